// Bringing back what was evicted: walks over the graph of recipes, never recursive.
#include <algorithm>
#include <utility>

#include "runtime/residency/claims.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/walk.h"

namespace tidemark {

// Can the storage's recipe be run, with everything that has to be recomputed for it?
bool Residency::runnable(const Storage& storage) const {
  if (!storage.recipe_) return false;
  if (storage.runnable_at_ == epoch_) return true;
  const uint64_t walk = ++walk_;
  std::vector<const Storage*> pending{&storage};
  std::vector<const Storage*> seen{&storage};
  storage.mark_ = walk;
  while (!pending.empty()) {
    const Storage* next = pending.back();
    pending.pop_back();
    ++examined_;
    for (const Recipe::Input& input : next->recipe_->inputs) {
      const Storage& source = *input.storage;
      if (source.version_ - source.unwritten_ != input.version) return false;
      if (available(source) || source.mark_ == walk || source.runnable_at_ == epoch_) continue;
      if (!source.recipe_) return false;
      source.mark_ = walk;
      pending.push_back(&source);
      seen.push_back(&source);
    }
  }
  for (const Storage* s : seen) s->runnable_at_ = epoch_;
  return true;
}

std::optional<Nanos> Residency::recompute_cost(Storage& storage, Nanos enough) const {
  if (!runnable(storage)) return std::nullopt;
  const uint64_t walk = ++walk_;
  Nanos total{0};
  std::vector<const Recipe*> pending{storage.recipe_.get()};
  storage.recipe_->mark_ = walk;
  while (!pending.empty() && total <= enough) {
    const Recipe* call = pending.back();
    pending.pop_back();
    total += costs_.time(call->cost_key);
    ++examined_;
    for (const Recipe::Input& input : call->inputs) {
      Storage& source = *input.storage;
      if (source.resident() || source.mark_ == walk) continue;
      source.mark_ = walk;
      if (source.residence_ == Residence::kOffloaded) {
        total += reload_cost(source);
      } else if (source.recipe_->mark_ != walk) {
        source.recipe_->mark_ = walk;
        pending.push_back(source.recipe_.get());
      }
    }
  }
  return total;
}

// The calls to run again for `root`, each once, inputs before users.
std::vector<IntrusivePtr<Recipe>> Residency::plan_recomputation(Storage& root) {
  struct Frame {
    Recipe* call;
    size_t next_input = 0;
  };
  const uint64_t walk = ++walk_;
  std::vector<IntrusivePtr<Recipe>> plan;
  std::vector<Frame> stack{{root.recipe_.get()}};
  root.recipe_->mark_ = walk;
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next_input == frame.call->inputs.size()) {
      plan.emplace_back(frame.call);
      stack.pop_back();
      continue;
    }
    Storage& source = *frame.call->inputs[frame.next_input++].storage;
    if (available(source) || source.recipe_->mark_ == walk) continue;
    source.recipe_->mark_ = walk;
    stack.push_back({source.recipe_.get()});
  }
  return plan;
}

void Residency::materialise(Storage& root, Reason reason) {
  if (root.residence_ != Residence::kEvicted && root.residence_ != Residence::kDead) return;
  TIDEMARK_CHECK(runnable(root), "what was evicted can be recomputed");
  Recomputation recomputation(*this, root);
  const IntrusivePtr<Recipe> call(root.recipe_);
  if (recompute_at_once(recomputation, root, reason)) return;
  // One input after the other, with no claim on what is here already or on what they need in
  // their turn.
  Claims inputs(*this);
  for (const Recipe::Input& input : call->inputs) {
    if (available(*input.storage)) continue;
    inputs.add(*input.storage);
    materialise(*input.storage, reason);
  }
  for (const Recipe::Input& input : call->inputs) inputs.add(*input.storage);
  issue(*call, Run::kAgain, reason);
}

// Each call once: every input that is to be read is claimed until it has been, so that none is
// evicted again before its use. False if memory did not suffice for all those claims, and they
// were given up on the way.
bool Residency::recompute_at_once(Recomputation& recomputation, Storage& root, Reason reason) {
  const auto plan = plan_recomputation(root);
  for (const auto& call : plan) recomputation.will_run(*call);
  for (const auto& call : plan) {
    if (recomputation.gave_up()) return false;
    issue(*call, Run::kAgain, reason);
    recomputation.has_run();
  }
  return true;
}

// The last of all resorts: recomputations under way claim the inputs of the call at hand alone.
// What they lose so will be recomputed for its reader, a level deeper on the stack; that may
// double with each level, so a step in which it has become too much runs out of memory instead.
bool Residency::give_up_claims() {
  constexpr size_t kDeepest = 200;
  constexpr int64_t kMostAgain = 16;  // times the calls of the step so far
  if (recomputations_.size() > kDeepest || stats_.recomputes > kMostAgain * stats_.operators)
    return false;
  bool any = false;
  for (Recomputation* recomputation : recomputations_) any = recomputation->give_up() || any;
  return any;
}

// Recomputes the inputs that were evicted, and those offloaded that are better recomputed. The
// rest is fetched when the call is issued.
void Residency::materialise_inputs(Recipe& call) {
  for (const Recipe::Input& input : call.inputs) {
    Storage& storage = *input.storage;
    if (storage.residence_ == Residence::kOffloaded && can_evict(storage) &&
        policy_.recompute_offloaded(*this, storage)) {
      give_up_copy(storage, Reason::kNeeded);
    }
    materialise(storage, Reason::kNeeded);
  }
}

// Would recomputing `from` read a storage for which `is_target` holds, now or once what is here
// only for a recomputation under way (nobody uses it) is gone again? `known` is asked of each
// storage that would be recomputed for it; none: its own sources are looked at.
template <class IsTarget, class Known>
bool Residency::reads(const Storage& from, const IsTarget& is_target,
                      const Known& known) const {
  const uint64_t walk = ++walk_;
  std::vector<const Storage*> pending{&from};
  from.mark_ = walk;
  while (!pending.empty()) {
    const Storage* next = pending.back();
    pending.pop_back();
    if (!next->recipe_) continue;
    ++examined_;
    for (const Recipe::Input& input : next->recipe_->inputs) {
      const Storage& source = *input.storage;
      if (is_target(source)) return true;
      if (source.mark_ == walk || stays_available(source)) continue;
      source.mark_ = walk;
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

bool Residency::reaches(const Storage& from, const Storage& target) const {
  return reads(
      from, [&](const Storage& source) { return &source == &target; },
      [](const Storage&) { return std::optional<bool>(); });
}

// Would bringing back something that was evicted, and has users, read it?
bool Residency::evicted_reach(const Storage& target) const {
  for (Storage* s = storages_; s; s = s->next_) {
    ++examined_;
    const bool evicted = s->residence_ == Residence::kEvicted && needed(*s);
    if (evicted && reaches(*s, target)) return true;
  }
  return false;
}

// Would recomputing it read one of writing_? Kept until something changes, as many are asked
// for between two changes.
bool Residency::depends_on_written(const Storage& storage) const {
  if (writing_.empty()) return false;
  if (storage.dependence_at_ != change_) {
    storage.depends_on_written_ = find_dependence(storage);
    storage.dependence_at_ = change_;
  }
  return storage.depends_on_written_;
}

bool Residency::find_dependence(const Storage& storage) const {
  std::vector<const Storage*> seen{&storage};
  const auto known = [&](const Storage& source) -> std::optional<bool> {
    if (source.dependence_at_ == change_) return source.depends_on_written_;
    seen.push_back(&source);
    return std::nullopt;
  };
  const auto is_written = [](const Storage& source) { return source.being_written_; };
  if (reads(storage, is_written, known)) return true;
  for (const Storage* s : seen) {
    s->depends_on_written_ = false;
    s->dependence_at_ = change_;
  }
  return false;
}

// `storage` is about to be written in place: what was evicted and would be recomputed from its
// present contents comes back first, and needs no recipe any more.
void Residency::protect_readers_of(Storage& storage) {
  if (storage.readers_ == 0 || evicted_users_ == 0) return;
  std::vector<IntrusivePtr<Storage>> readers;
  for_each_storage([&](Storage& s) {
    if (s.residence_ == Residence::kEvicted && needed(s) && reaches(s, storage)) {
      readers.emplace_back(&s);
    }
  });
  for (size_t i = readers.size(); i-- > 0;) {  // oldest first
    materialise(*readers[i], Reason::kOverwritten);
    drop_recipe(*readers[i]);
  }
}

}  // namespace tidemark
