#include "runtime/residency/rematerialiser.h"

#include <algorithm>
#include <deque>

#include "runtime/core/errors.h"
#include "runtime/residency/claims.h"

namespace tidemark {

// A storage that is being brought back, and the calls to run again for it. Recomputations under
// way form a stack in the rematerialiser.
class Rematerialiser::Recomputation {
 public:
  Recomputation(Rematerialiser& owner, Storage& root) : owner_(owner), root_(owner) {
    root_.add(root);
    owner.recomputations_.push_back(this);
  }
  Recomputation(const Recomputation&) = delete;
  Recomputation& operator=(const Recomputation&) = delete;
  ~Recomputation() { owner_.recomputations_.pop_back(); }

  // Claims the call's inputs until it has run. Calls must run in this order.
  void will_run(const Recipe& call) {
    Claims& inputs = to_be_read_.emplace_back(owner_);
    for (const Recipe::Input& input : call.inputs) inputs.add(*input.storage);
  }
  void has_run() { to_be_read_.pop_front(); }
  // Drops all claims but those of the current call. Returns false if there were no others.
  bool drop_claims() {
    if (to_be_read_.size() <= 1) return false;
    while (to_be_read_.size() > 1) to_be_read_.pop_back();
    return dropped_claims_ = true;
  }
  bool dropped_claims() const { return dropped_claims_; }

 private:
  Rematerialiser& owner_;
  Claims root_;
  std::deque<Claims> to_be_read_;  // by call
  bool dropped_claims_ = false;
};

void Rematerialiser::materialise(Storage& root, Reason reason) {
  if (root.residence() != Residence::kEvicted && root.residence() != Residence::kDead) return;
  TIDEMARK_CHECK(graph_.runnable(root), "an evicted storage can be recomputed");
  Recomputation recomputation(*this, root);
  const IntrusivePtr<Recipe> call(root.managed.recipe);
  if (recompute_at_once(recomputation, root, reason)) return;
  // Recomputes one input after the other, with no claim on available inputs or on sources.
  Claims inputs(*this);
  for (const Recipe::Input& input : call->inputs) {
    if (input.storage->managed.available()) continue;
    inputs.add(*input.storage);
    materialise(*input.storage, reason);
  }
  for (const Recipe::Input& input : call->inputs) inputs.add(*input.storage);
  run_again_(*call, reason);
}

// Runs each call once. Every input is claimed until it has been read, so that none is evicted
// before its use. Returns false if memory did not suffice for all claims and they were dropped
// on the way.
bool Rematerialiser::recompute_at_once(Recomputation& recomputation, Storage& root,
                                       Reason reason) {
  const auto plan = graph_.calls_for(root);
  for (const auto& call : plan) recomputation.will_run(*call);
  for (const auto& call : plan) {
    if (recomputation.dropped_claims()) return false;
    run_again_(*call, reason);
    recomputation.has_run();
  }
  return true;
}

// The very last resort: recomputations under way claim only the inputs of their current calls.
// An input that they lose is recomputed for its reader, a level deeper on the stack. That may
// double with each level, so a step that recomputes too much runs out of memory instead.
bool Rematerialiser::release_claims() {
  constexpr size_t kDeepest = 200;
  constexpr int64_t kMaxAgain = 16;  // times the calls of the step so far
  if (recomputations_.size() > kDeepest ||
      context_.stats.recomputes > kMaxAgain * context_.stats.operators)
    return false;
  bool any = false;
  for (Recomputation* recomputation : recomputations_)
    any = recomputation->drop_claims() || any;
  return any;
}

void Rematerialiser::materialise_inputs(const Recipe& call) {
  for (const Recipe::Input& input : call.inputs) {
    Storage& storage = *input.storage;
    if (storage.managed.offloaded() && transfers_.can_evict(storage) &&
        context_.policy.recompute_offloaded(*context_.view, storage)) {
      transfers_.drop_copy(storage, Reason::kNeeded);
    }
    materialise(storage, Reason::kNeeded);
  }
}

void Rematerialiser::protect_readers_of(Storage& storage) {
  if (storage.managed.readers == 0 || changes_.counts().evicted_needed == 0) return;
  std::vector<IntrusivePtr<Storage>> readers;
  context_.storages.for_each([&](Storage& s) {
    context_.effort.examine();
    if (s.managed.evicted() && s.managed.needed() && graph_.reaches(s, storage)) {
      readers.emplace_back(&s);
    }
  });
  for (size_t i = readers.size(); i-- > 0;) {  // oldest first
    materialise(*readers[i], Reason::kOverwritten);
    changes_.drop_recipe(*readers[i]);
  }
}

void Rematerialiser::protect_readers() {
  const std::vector<Storage*> written = graph_.written();
  const auto recomputed = std::exchange(recomputed_, {});
  if (written.empty()) return;
  // As with the readers brought back below: they could not be recomputed after the write.
  const auto drop_recipes = [&](bool available) {
    for (const auto& storage : recomputed) {
      const ManagedStorage& s = storage->managed;
      if (!s.recipe || s.available() != available || !graph_.depends_on_written(*storage))
        continue;
      changes_.drop_recipe(*storage);
      if (!available) graph_.lost_source();
    }
  };
  drop_recipes(/*available=*/true);
  for (Storage* storage : written) protect_readers_of(*storage);
  // Storages that are gone again may have been needed to bring the readers back.
  drop_recipes(/*available=*/false);
}

void Rematerialiser::bring_back_survivors() {
  recomputed_.clear();
  while (changes_.counts().evicted_needed > 0) {
    std::vector<Storage*> evicted;
    context_.storages.for_each([&](Storage& s) {
      context_.effort.examine();
      if (s.managed.evicted() && s.managed.needed()) evicted.push_back(&s);
    });
    std::reverse(evicted.begin(), evicted.end());  // oldest first
    for (Storage* storage : evicted) {
      if (storage->managed.evicted()) materialise(*storage, Reason::kEndOfStep);
      changes_.drop_recipe(*storage);
    }
  }
  for (const auto& storage : context_.storages.in_use()) changes_.drop_recipe(*storage);
}

void Rematerialiser::unclaim(Storage& storage) {
  --storage.managed.claims;
  settle_unused(storage);
}

void Rematerialiser::release_hold(Storage& storage) {
  changes_.release_hold(storage);
  settle_unused(storage);
}

// Whether an evicted storage that is needed depends on this one, which itself cannot be
// recomputed.
bool Rematerialiser::is_only_source(const Storage& storage) const {
  return storage.managed.readers > 0 && changes_.counts().evicted_needed > 0 &&
         !graph_.runnable(storage) && graph_.evicted_reach(storage);
}

void Rematerialiser::settle_unused(Storage& storage) {
  if (storage.managed.wanted() || !storage.managed.available()) return;
  // Bytes that a recipe may still read and that cannot be recomputed are kept, if anything may
  // ever be evicted. They may be offloaded like any others.
  const bool may_be_read = storage.managed.readers > 0 && !storage.managed.recipe &&
                           context_.options.evict && context_.options.managed;
  const bool fits = context_.options.known_to_fit || context_.arena.plan_is_open();
  const bool is_kept = may_be_read && !(fits && changes_.counts().evicted_needed == 0);
  if (!is_kept) free_unused(storage);
}

void Rematerialiser::free_unused(Storage& storage) {
  const ManagedStorage& s = storage.managed;
  if (s.wanted() || !s.available() || is_only_source(storage)) return;
  if (s.readers > 0) graph_.losing(storage);
  if (s.has_copy()) changes_.drop_copy(storage);
  if (storage.resident()) {
    changes_.leave_block(storage, Residence::kDead);
  } else {
    changes_.die(storage);
  }
}

bool Rematerialiser::let_overwrite(const Storage& storage) {
  const ManagedStorage& s = storage.managed;
  const bool by_this_call_alone = s.users == 0 && s.pins == 1 && s.claims == 1;
  if (!by_this_call_alone || is_only_source(storage)) return false;
  if (s.readers > 0) graph_.losing(storage);
  return true;
}

void Rematerialiser::note_recomputed(const Recipe& call) {
  for (const Recipe::Output& output : call.outputs) {
    if (output.storage && output.storage->resident()) recomputed_.emplace_back(output.storage);
  }
}

}  // namespace tidemark
