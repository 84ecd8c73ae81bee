#include "runtime/policy/delta_policy.h"

#include <algorithm>

#include "runtime/core/errors.h"
#include "runtime/residency/residency.h"

namespace tidemark {

DeltaPolicy::DeltaPolicy(const DeltaOptions& options, bool known_to_fit)
    : options_(options),
      score_(find_filter(options.filter.empty() ? "base" : options.filter).score),
      known_to_fit_(known_to_fit) {
  if (!(options.early_start >= 0 && options.early_start <= 1)) {
    throw UsageError("early start is a share of the budget, from 0 (off) to 1");
  }
  if (options.prefetch < 0) throw UsageError("the prefetcher's limit cannot be negative");
}

// Algorithm 2, with an index in place of the loop over all tensors.
Storage* DeltaPolicy::choose(const Residency& residency) {
  return index_.best(score_, residency.clock(),
                     [&](const Storage& s) { return residency.may_release(s); });
}

// Algorithm 3. F = h_r / h_o = c_r / c_s, equations (4) to (6): m and s cancel. c_r is what it
// would cost now; what a gradient was made from is gone when it is used again, and its cost is
// then a good part of the step, so gradients are offloaded.
Action DeltaPolicy::decide(const Residency& residency, Storage& storage) {
  if (storage.category == Category::kGradient) return Action::kOffload;
  const Nanos swap = residency.costs().swap_time(storage.bytes());
  const auto recompute = residency.recompute_cost(storage, swap);
  return recompute && *recompute <= swap ? Action::kEvict : Action::kOffload;
}

bool DeltaPolicy::recompute_offloaded(const Residency& residency, Storage& storage) {
  if (storage.evict_pinned) return false;
  if (options_.always_recompute) return true;
  const Nanos reload = residency.reload_cost(storage);
  const auto recompute = residency.recompute_cost(storage, reload);
  return recompute && *recompute < reload;
}

bool DeltaPolicy::may_release_now(const Residency& residency) const {
  return !options_.assumption2 || residency.phase() != Phase::kBackward;
}

void DeltaPolicy::on_event(const StorageEvent& event) noexcept {
  if (goes_away(event)) {
    if (in_forward_) {
      queue_.push_front(event.storage);
    } else {
      queue_.push_back(event.storage);
    }
  } else if (ends_absence(event)) {
    const auto place = std::find(queue_.begin(), queue_.end(), event.storage);
    if (place != queue_.end()) queue_.erase(place);
  }
}

void DeltaPolicy::after_operator(Residency& residency, const Recipe& /*call*/) {
  in_forward_ = residency.phase() == Phase::kForward;
  if (known_to_fit_) return;
  start_early(residency);
  if (!in_forward_) prefetch(residency);
}

// Algorithm 1, line 11: "while 3/4 of memory has been used".
void DeltaPolicy::start_early(Residency& residency) const {
  if (options_.early_start == 0 || !may_release_now(residency)) return;
  const auto& offsets = residency.arena().offsets();
  const Bytes limit = share_of(offsets.capacity(), options_.early_start);
  while (offsets.used() > limit) {
    Storage* storage = index_.best(score_, residency.clock(), [&](const Storage& s) {
      return residency.may_release(s) && s.last_access < residency.clock();
    });
    if (!storage || !residency.release(*storage, Reason::kEarlyStart)) return;
  }
}

// Algorithm 4, repaired: while memory is enough *and* fewer than n are under way.
void DeltaPolicy::prefetch(Residency& residency) {
  const auto& offsets = residency.arena().offsets();
  const Bytes limit = options_.early_start == 0
                          ? offsets.capacity()
                          : share_of(offsets.capacity(), options_.early_start);
  while (!queue_.empty() && residency.prefetched() < options_.prefetch) {
    Storage& next = *queue_.front();
    if (offsets.used() + next.size() > limit || !residency.prefetch(next)) return;
  }
}

}  // namespace tidemark
