#include "runtime/policy/delta_policy.h"

#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {

DeltaPolicy::DeltaPolicy(const DeltaOptions& options, bool known_to_fit,
                         const DeltaRepairs& repairs)
    : options_(options),
      repairs_(changed_repairs(repairs, options.repairs)),
      score_(find_filter(options.filter.empty() ? "base" : options.filter).score),
      known_to_fit_(known_to_fit) {
  if (!(options.early_start >= 0 && options.early_start <= 1)) {
    throw UsageError("early start must be a share of the budget, from 0 (off) to 1");
  }
  if (options.prefetch < 0) throw UsageError("the prefetch limit cannot be negative");
}

// Algorithm 2, with an index instead of the loop over all tensors.
Storage* DeltaPolicy::choose(const MemoryView& view) {
  return index_.best(score_, view.clock(),
                     [&](const Storage& s) { return view.may_release(s); });
}

// The paper's evict_pinned: parameters and optimizer state may be offloaded, not evicted.
bool DeltaPolicy::may_evict(const Storage& storage) const {
  return repairs_.state || (storage.category != Category::kParameter &&
                            storage.category != Category::kOptimizerState);
}

// Algorithm 3. F = h_r / h_o = c_r / c_s by equations (4) to (6): m and s cancel. c_r is what
// recomputing costs now. When a gradient is used again its sources are gone, and recomputing it
// would take a good part of the step, so gradients are offloaded.
Action DeltaPolicy::decide(const MemoryView& view, Storage& storage) {
  if (repairs_.gradients && storage.category == Category::kGradient) return Action::kOffload;
  if (!repairs_.prices) return Action::kEvict;
  const Nanos swap = repairs_.link ? view.costs().swap_time(storage.bytes())
                                   : view.costs().unmeasured_swap_time(storage.bytes());
  const auto recompute = view.recompute_cost(storage, swap);
  return recompute && *recompute <= swap ? Action::kEvict : Action::kOffload;
}

bool DeltaPolicy::recompute_offloaded(const MemoryView& view, Storage& storage) {
  if (storage.evict_pinned || !may_evict(storage)) return false;
  if (!repairs_.reload || !repairs_.prices) return true;
  const Nanos reload = view.reload_cost(storage);
  const auto recompute = view.recompute_cost(storage, reload);
  return recompute && *recompute < reload;
}

bool DeltaPolicy::may_release_now(const MemoryView& view) const {
  return repairs_.backward || view.phase() == Phase::kForward;
}

void DeltaPolicy::on_event(const StorageEvent& event) noexcept {
  if (goes_away(event)) {
    if (in_forward_ && repairs_.order) {
      queue_.push_front(*event.storage);
    } else {
      queue_.push_back(*event.storage);
    }
  } else if (ends_absence(event)) {
    queue_.remove(*event.storage);
    using Kind = StorageEvent::Kind;
    was_missed_ = was_missed_ || event.kind == Kind::kReloaded ||
                  (event.kind == Kind::kCopyDropped && event.reason == Reason::kNeeded);
  }
}

Decision DeltaPolicy::after_operator(const MemoryView& view, Outcome last) {
  if (last == Outcome::kNone) {
    in_forward_ = view.phase() == Phase::kForward;
    const bool missed = std::exchange(was_missed_, false);
    prefetches_ = repairs_.moment ? !in_forward_ : missed;
    starts_early_ = true;
  }
  if (known_to_fit_) return {};
  if (starts_early_) {
    const Decision early = last == Outcome::kImpossible ? Decision() : start_early(view);
    if (early.storage) return early;
    starts_early_ = false;
  } else if (last == Outcome::kImpossible) {
    return {};
  }
  return prefetches_ ? prefetch(view) : Decision();
}

// Algorithm 1, line 11: "while 3/4 of memory has been used".
Decision DeltaPolicy::start_early(const MemoryView& view) const {
  if (options_.early_start == 0 || !may_release_now(view)) return {};
  if (view.used() <= share_of(view.capacity(), options_.early_start)) return {};
  Storage* storage = index_.best(score_, view.clock(), [&](const Storage& s) {
    return view.may_release(s) && (!repairs_.recent || s.last_access < view.clock());
  });
  if (!storage) return {};
  return {Decision::What::kRelease, storage, Reason::kEarlyStart};
}

// Algorithm 4 goes on while memory is enough or fewer than n are under way; a reload without
// space fails, which ends it. Ours stops at the first of the two limits, and does not take what
// early start would release again.
Decision DeltaPolicy::prefetch(const MemoryView& view) const {
  if (queue_.empty() || options_.prefetch == 0) return {};
  Storage& next = queue_.front();
  if (repairs_.limits) {
    if (view.prefetched() >= options_.prefetch) return {};
    const Bytes limit = options_.early_start == 0
                            ? view.capacity()
                            : share_of(view.capacity(), options_.early_start);
    if (view.used() + next.size() > limit) return {};
  }
  return {Decision::What::kPrefetch, &next, Reason::kNone};
}

}  // namespace tidemark
