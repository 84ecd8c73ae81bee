// Sending storages away, and bringing copies back.
#include <algorithm>
#include <utility>

#include "runtime/residency/new_block.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/walk.h"

namespace tidemark {
namespace {

bool is_older(const Storage* a, const Storage* b) { return a->id() < b->id(); }

}  // namespace

bool Residency::can_offload(const Storage& storage) const {
  return !storage.offload_pinned && !tiers_.empty();
}

bool Residency::can_evict(Storage& storage) const {
  return options_.evict && !storage.evict_pinned && runnable(storage) &&
         !depends_on_written(storage);
}

bool Residency::release(Storage& storage, Reason reason) {
  if (storage.tier_) {
    drop_clean(storage, reason);
    return true;
  }
  const bool evictable = can_evict(storage);
  const bool offloadable = can_offload(storage) && policy_.may_offload(storage);
  if (offloadable && (!evictable || policy_.decide(*this, storage) == Action::kOffload) &&
      offload(storage, reason)) {
    return true;
  }
  if (!evictable) return false;
  evict(storage, reason);
  return true;
}

bool Residency::release_by(Storage& storage, Action action, Reason reason) {
  if (!storage.resident() || storage.pins_ > 0) return false;
  if (action == Action::kOffload) {
    if (!storage.tier_) return can_offload(storage) && offload(storage, reason);
    drop_clean(storage, reason);
    return true;
  }
  if (storage.wanted_ > 0 || !can_evict(storage)) return false;
  evict(storage, reason);
  return true;
}

void Residency::evict(Storage& storage, Reason reason) {
  tell(StorageEvent::Kind::kEvicted, &storage, reason);
  leave_arena(storage, Residence::kEvicted);
  log(EventKind::kEvict, reason, storage, StreamId::kCompute, Nanos(0));
  ++stats_.evictions;
  stats_.evicted_bytes += storage.size();
}

bool Residency::offload(Storage& storage, Reason reason) {
  if (!store(storage, EventKind::kOffload, reason)) return false;
  tell(StorageEvent::Kind::kOffloaded, &storage, reason);
  leave_arena(storage, Residence::kOffloaded);
  return true;
}

bool Residency::copy_out(Storage& storage, Reason reason) {
  if (!storage.resident() || storage.tier_ || !can_offload(storage) ||
      !store(storage, EventKind::kCopyOut, reason)) {
    return false;
  }
  tell(StorageEvent::Kind::kCopiedOut, &storage, reason);
  return true;
}

// Gives a resident storage a copy on a tier. False: none has room.
bool Residency::store(Storage& storage, EventKind kind, Reason reason) {
  Tier* tier = nullptr;
  auto space = reserve_on_tier(storage.size(), tier);
  if (!space) return false;
  Event done;
  Fence enqueued;
  try {
    device_.wait(StreamId::kOffload, storage.written_);
    device_.wait(StreamId::kOffload, space->fence);
    const uint64_t tag =
        log(kind, reason, storage, StreamId::kOffload, tier->store_time(storage.bytes()));
    measure(tag, {0, tier == tiers_.front() ? storage.bytes() : Bytes(0), false});
    done = tier->store(space->pieces, arena_.address(storage.block_.offset), storage.bytes(),
                       tag, &enqueued);
  } catch (...) {
    storage.touched_.include(enqueued);
    space->fence.include(enqueued);
    tier->release(space->pieces, space->fence);
    throw;
  }
  storage.tier_ = tier;
  ++clean_copies_;
  storage.tier_pieces_ = std::move(space->pieces);
  storage.tier_fence_ = Fence(done);
  storage.touched_.include(done);
  ++stats_.offloads;
  stats_.offload_bytes += storage.size();
  if (!options_.overlap) device_.wait(StreamId::kCompute, done);
  return true;
}

// A valid copy is on a tier already: only the block is freed.
void Residency::drop_clean(Storage& storage, Reason reason) {
  tell(StorageEvent::Kind::kDropped, &storage, reason);
  leave_arena(storage, Residence::kOffloaded);
  log(EventKind::kDropClean, reason, storage, StreamId::kCompute, Nanos(0));
  ++stats_.clean_drops;
}

void Residency::reload(Storage& storage, NewBlock block, EventKind kind, Reason reason) {
  Tier& tier = *storage.tier_;
  device_.wait(StreamId::kReload, storage.tier_fence_);
  const uint64_t tag =
      log(kind, reason, storage, StreamId::kReload, tier.load_time(storage.bytes()));
  measure(tag, {0, &tier == tiers_.front() ? storage.bytes() : Bytes(0), false});
  Fence enqueued;
  Event done;
  try {
    done = tier.load(storage.tier_pieces_, arena_.address(block.offset()), storage.bytes(), tag,
                     &enqueued);
  } catch (...) {
    block.fence().include(enqueued);
    storage.tier_fence_.include(enqueued);
    throw;
  }
  storage.tier_fence_.include(done);
  const bool ahead = kind == EventKind::kPrefetch;
  become_resident(storage, block, done,
                  ahead ? StorageEvent::Kind::kPrefetched : StorageEvent::Kind::kReloaded);
  ++stats_.reloads;
  stats_.reload_bytes += storage.size();
  if (!options_.overlap) device_.wait(StreamId::kCompute, done);
}

bool Residency::prefetch(Storage& storage, std::optional<Offset> at) {
  stop_here();
  const auto place = at ? arena_.allocate_at(*at, storage.size(), storage.category)
                        : arena_.allocate(storage.size(), storage.category);
  if (!place) return false;
  NewBlock block(arena_, storage.category, *place);
  device_.wait(StreamId::kReload, block.fence());
  reload(storage, std::move(block), EventKind::kPrefetch, Reason::kNone);
  storage.prefetched_ = true;
  ++prefetched_;
  ++stats_.prefetches;
  return true;
}

bool Residency::copy_in(Storage& storage, std::optional<Offset> at) {
  return storage.residence_ == Residence::kOffloaded &&
         (at || slide_for(storage.size(), /*at_any_cost=*/true)) && prefetch(storage, at);
}

// The nearest tier that has room. Copies of resident storages make way first: nothing is lost.
std::optional<TierSpace> Residency::reserve_on_tier(Bytes size, Tier*& tier) {
  for (Tier* candidate : tiers_) {
    if (size > candidate->limit()) continue;
    tier = candidate;
    if (auto space = tier->reserve(size)) return space;
    std::vector<Storage*> clean;
    for (Storage* s : clean_copies_ > 0 ? placed() : std::vector<Storage*>()) {
      if (s->tier_ == tier) clean.push_back(s);
    }
    std::sort(clean.begin(), clean.end(), is_older);
    for (Storage* storage : clean) {
      drop_tier_copy(*storage);
      if (auto space = tier->reserve(size)) return space;
    }
  }
  return std::nullopt;
}

// The austere schedule's way to room on full tiers: what can be computed need not be copied.
void Residency::give_up_copies_for(Bytes size) {
  std::vector<Storage*> copied;
  for_each_storage([&](Storage& s) {
    if (s.residence_ == Residence::kOffloaded && s.wanted_ == 0) copied.push_back(&s);
  });
  Bytes freed{0};
  for (size_t i = copied.size(); i-- > 0 && freed < size;) {
    Storage& storage = *copied[i];
    if (!can_evict(storage)) continue;
    give_up_copy(storage, Reason::kAustere);
    freed += storage.size();
  }
}

bool Residency::give_up_copy(Storage& storage) {
  if (storage.residence_ != Residence::kOffloaded || !can_evict(storage)) return false;
  give_up_copy(storage, Reason::kPlan);
  return true;
}

// What was offloaded is evicted instead: recomputed when it is needed.
void Residency::give_up_copy(Storage& storage, Reason reason) {
  tell(StorageEvent::Kind::kCopyGivenUp, &storage, reason);
  drop_tier_copy(storage);
  storage.residence_ = Residence::kEvicted;
  if (needed(storage)) ++evicted_users_;
  ++change_;
  log(EventKind::kGiveUpCopy, reason, storage, StreamId::kCompute, Nanos(0));
}

void Residency::drop_tier_copy(Storage& storage) {
  if (!storage.tier_) return;
  if (storage.resident()) --clean_copies_;
  storage.tier_->release(storage.tier_pieces_, storage.tier_fence_);
  storage.tier_ = nullptr;
  storage.tier_fence_ = {};
}

Nanos Residency::reload_cost(const Storage& storage) const {
  const Tier* tier = storage.tier_ ? storage.tier_ : tiers_.empty() ? nullptr : tiers_.front();
  if (!tier) return Nanos(0);
  return tier == tiers_.front() ? std::max(costs_.reload_time(storage.bytes()), Nanos(1))
                                : tier->load_time(storage.bytes());
}

}  // namespace tidemark
