#include "runtime/residency/recipe_graph.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

// Whether the storage is available, and not just for a recomputation under way.
bool stays_available(const Storage& storage) {
  return storage.managed.available() && (storage.managed.needed() || !storage.managed.recipe);
}

}  // namespace

// Whether the storage's recipe can run, with everything that has to be recomputed for it.
bool RecipeGraph::runnable(const Storage& storage) const {
  if (!storage.managed.recipe) return false;
  if (storage.managed.runnable_at == epoch_) return true;
  const uint64_t walk = ++walk_;
  std::vector<const Storage*> pending{&storage};
  std::vector<const Storage*> seen{&storage};
  storage.managed.mark = walk;
  while (!pending.empty()) {
    const Storage* next = pending.back();
    pending.pop_back();
    context_.effort.examine();
    for (const Recipe::Input& input : next->managed.recipe->inputs) {
      const Storage& source = *input.storage;
      if (source.managed.version - source.managed.unwritten != input.version) return false;
      if (source.managed.available()) continue;
      if (!source.managed.recipe) return false;  // also if it had one earlier in this epoch
      if (source.residence() == Residence::kEmpty) return false;  // its call is deferred
      if (source.managed.mark == walk || source.managed.runnable_at == epoch_) continue;
      source.managed.mark = walk;
      pending.push_back(&source);
      seen.push_back(&source);
    }
  }
  for (const Storage* s : seen) s->managed.runnable_at = epoch_;
  return true;
}

std::optional<Nanos> RecipeGraph::recompute_cost(const Storage& storage, Nanos enough) const {
  if (!runnable(storage)) return std::nullopt;
  const uint64_t walk = ++walk_;
  Nanos total{0};
  std::vector<const Recipe*> pending{storage.managed.recipe.get()};
  storage.managed.recipe->mark = walk;
  while (!pending.empty() && total <= enough) {
    const Recipe* call = pending.back();
    pending.pop_back();
    total += context_.costs.time(call->cost_key);
    context_.effort.examine();
    for (const Recipe::Input& input : call->inputs) {
      Storage& source = *input.storage;
      if (source.resident() || source.managed.mark == walk) continue;
      source.managed.mark = walk;
      if (source.managed.offloaded()) {
        total += reload_cost(source);
      } else if (source.managed.recipe->mark != walk) {
        source.managed.recipe->mark = walk;
        pending.push_back(source.managed.recipe.get());
      }
    }
  }
  return total;
}

// The calls to run again for `root`, each once, inputs before users.
std::vector<IntrusivePtr<Recipe>> RecipeGraph::calls_for(const Storage& root) const {
  struct Frame {
    Recipe* call;
    size_t next_input = 0;
  };
  const uint64_t walk = ++walk_;
  std::vector<IntrusivePtr<Recipe>> plan;
  std::vector<Frame> stack{{root.managed.recipe.get()}};
  root.managed.recipe->mark = walk;
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next_input == frame.call->inputs.size()) {
      plan.emplace_back(frame.call);
      stack.pop_back();
      continue;
    }
    Storage& source = *frame.call->inputs[frame.next_input++].storage;
    if (source.managed.available() || source.managed.recipe->mark == walk) continue;
    source.managed.recipe->mark = walk;
    stack.push_back({source.managed.recipe.get()});
  }
  return plan;
}

// Whether recomputing `from` would read a storage for which `is_target` holds, now or once
// storages kept only for a recomputation under way are gone again. `known` is asked about each
// storage that would be recomputed for it; without an answer, that storage's sources are
// visited.
template <class IsTarget, class Known>
bool RecipeGraph::reads(const Storage& from, const IsTarget& is_target,
                        const Known& known) const {
  const uint64_t walk = ++walk_;
  std::vector<const Storage*> pending{&from};
  from.managed.mark = walk;
  while (!pending.empty()) {
    const Storage* next = pending.back();
    pending.pop_back();
    if (!next->managed.recipe) continue;
    context_.effort.examine();
    for (const Recipe::Input& input : next->managed.recipe->inputs) {
      const Storage& source = *input.storage;
      if (is_target(source)) return true;
      if (source.managed.mark == walk || stays_available(source)) continue;
      source.managed.mark = walk;
      const std::optional<bool> answer = known(source);
      if (!answer) {
        pending.push_back(&source);
      } else if (*answer) {
        return true;
      }
    }
  }
  return false;
}

bool RecipeGraph::reaches(const Storage& from, const Storage& target) const {
  return reads(
      from, [&](const Storage& source) { return &source == &target; },
      [](const Storage&) { return std::optional<bool>(); });
}

bool RecipeGraph::evicted_reach(const Storage& target) const {
  return context_.storages.any([&](const Storage& s) {
    context_.effort.examine();
    return s.managed.evicted() && s.managed.needed() && reaches(s, target);
  });
}

// Whether recomputing the storage would read one of written_. The answer is kept until
// something changes, as many are asked for between two changes.
bool RecipeGraph::depends_on_written(const Storage& storage) const {
  if (written_.empty()) return false;
  if (storage.managed.dependence_at != change()) {
    storage.managed.depends_on_written = find_dependence(storage);
    storage.managed.dependence_at = change();
  }
  return storage.managed.depends_on_written;
}

bool RecipeGraph::find_dependence(const Storage& storage) const {
  std::vector<const Storage*> seen{&storage};
  const auto known = [&](const Storage& source) -> std::optional<bool> {
    if (source.managed.dependence_at == change()) return source.managed.depends_on_written;
    seen.push_back(&source);
    return std::nullopt;
  };
  const auto is_written = [](const Storage& source) { return source.managed.being_written; };
  if (reads(storage, is_written, known)) return true;
  for (const Storage* s : seen) {
    s->managed.depends_on_written = false;
    s->managed.dependence_at = change();
  }
  return false;
}

RecipeGraph::Writing::Writing(RecipeGraph& graph, const Recipe& call) : graph_(graph) {
  ++graph_.writings_;
  for (const Recipe::Input& input : call.inputs) {
    if (!input.written || input.storage->managed.readers == 0) continue;
    input.storage->managed.being_written = true;
    graph_.written_.push_back(input.storage.get());
  }
}

void RecipeGraph::Writing::end() {
  for (Storage* storage : std::exchange(graph_.written_, {}))
    storage->managed.being_written = false;
}

Nanos RecipeGraph::reload_cost(const Storage& storage) const {
  const std::vector<Tier*>& tiers = context_.tiers;
  const Tier* tier = storage.managed.tier;
  if (!tier && tiers.empty()) return Nanos(0);
  if (!tier) tier = tiers.front();
  return tier == tiers.front() ? std::max(context_.costs.reload_time(storage.bytes()), Nanos(1))
                               : tier->load_time(storage.bytes());
}

}  // namespace tidemark
