#include "runtime/residency/transfers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/residency/new_block.h"

namespace tidemark {
namespace {

bool is_older(const Storage* a, const Storage* b) { return a->id() < b->id(); }

}  // namespace

bool Transfers::can_evict(const Storage& storage) const {
  return context_.may_evict(storage) && graph_.runnable(storage) &&
         !graph_.depends_on_written(storage);
}

bool Transfers::release(Storage& storage, Reason reason) {
  if (storage.managed.has_copy()) {
    drop_clean(storage, reason);
    return true;
  }
  const bool evictable = can_evict(storage) && context_.policy.may_evict(storage);
  const bool offloadable =
      context_.may_offload(storage) && context_.policy.may_offload(storage);
  if (offloadable &&
      (!evictable || context_.policy.decide(*context_.view, storage) == Action::kOffload) &&
      offload(storage, reason)) {
    return true;
  }
  if (!evictable) return false;
  evict(storage, reason);
  return true;
}

bool Transfers::release_by(Storage& storage, Action action, Reason reason) {
  if (!storage.resident() || storage.managed.pins > 0) return false;
  if (action == Action::kOffload) {
    if (!storage.managed.has_copy())
      return context_.may_offload(storage) && offload(storage, reason);
    drop_clean(storage, reason);
    return true;
  }
  if (storage.managed.claims > 0 || !can_evict(storage)) return false;
  evict(storage, reason);
  return true;
}

void Transfers::evict(Storage& storage, Reason reason) {
  if (storage.managed.has_copy()) changes_.drop_copy(storage);
  context_.events.tell(StorageEvent::Kind::kEvicted, &storage, reason);
  changes_.leave_block(storage, Residence::kEvicted);
  context_.record(EventKind::kEvict, reason, storage, StreamId::kCompute, Nanos(0));
  ++context_.stats.evictions;
  context_.stats.evicted_bytes += storage.size();
}

bool Transfers::offload(Storage& storage, Reason reason) {
  if (!store(storage, EventKind::kOffload, reason)) return false;
  context_.events.tell(StorageEvent::Kind::kOffloaded, &storage, reason);
  changes_.leave_block(storage, Residence::kOffloaded);
  return true;
}

void Transfers::release_as_last_resort(Storage& storage) {
  if (storage.managed.has_copy()) {
    drop_clean(storage, Reason::kAustere);
  } else if (context_.may_offload(storage) && offload(storage, Reason::kAustere)) {
    return;
  } else if (storage.managed.claims == 0 && can_evict(storage)) {
    evict(storage, Reason::kAustere);
  } else if (context_.may_offload(storage)) {
    drop_copies_for(storage.size());
    offload(storage, Reason::kAustere);
  }
}

bool Transfers::copy_out(Storage& storage, Reason reason) {
  if (!storage.resident() || storage.managed.has_copy() || !context_.may_offload(storage) ||
      !store(storage, EventKind::kCopyOut, reason)) {
    return false;
  }
  context_.events.tell(StorageEvent::Kind::kCopiedOut, &storage, reason);
  return true;
}

// Gives a resident storage a copy on a tier. Returns false if no tier has space.
bool Transfers::store(Storage& storage, EventKind kind, Reason reason) {
  Tier* tier = nullptr;
  auto space = reserve_on_tier(storage.size(), tier);
  if (!space) return false;
  Event done;
  Fence enqueued;
  try {
    context_.device.wait(StreamId::kOffload, storage.managed.written);
    context_.device.wait(StreamId::kOffload, space->fence);
    const uint64_t tag = context_.record(kind, reason, storage, StreamId::kOffload,
                                         tier->store_time(storage.bytes()));
    measurements_.add(tag,
                      {0, tier == context_.tiers.front() ? storage.bytes() : Bytes(0), false});
    done = tier->store(space->pieces, context_.arena.address(storage.managed.block.offset),
                       storage.bytes(), tag, &enqueued);
  } catch (...) {
    storage.managed.touched.include(enqueued);
    space->fence.include(enqueued);
    tier->release(space->pieces, space->fence);
    throw;
  }
  changes_.add_copy(storage, *tier, std::move(space->pieces), Fence(done));
  storage.managed.touched.include(done);
  ++context_.stats.offloads;
  context_.stats.offload_bytes += storage.size();
  if (!context_.options.overlap || context_.policy.waits_for_offloads()) {
    context_.device.wait(StreamId::kCompute, done);
  }
  return true;
}

// A valid copy is on a tier already, so only the block is freed.
void Transfers::drop_clean(Storage& storage, Reason reason) {
  context_.events.tell(StorageEvent::Kind::kDropped, &storage, reason);
  changes_.leave_block(storage, Residence::kOffloaded);
  context_.record(EventKind::kDropClean, reason, storage, StreamId::kCompute, Nanos(0));
  ++context_.stats.clean_drops;
}

void Transfers::reload(Storage& storage, NewBlock block, EventKind kind, Reason reason) {
  Tier& tier = *storage.managed.tier;
  context_.device.wait(StreamId::kReload, storage.managed.tier_fence);
  const uint64_t tag = context_.record(kind, reason, storage, StreamId::kReload,
                                       tier.load_time(storage.bytes()));
  measurements_.add(tag,
                    {0, &tier == context_.tiers.front() ? storage.bytes() : Bytes(0), false});
  Fence enqueued;
  Event done;
  try {
    done = tier.load(storage.managed.tier_pieces, context_.arena.address(block.offset()),
                     storage.bytes(), tag, &enqueued);
  } catch (...) {
    block.fence().include(enqueued);
    storage.managed.tier_fence.include(enqueued);
    throw;
  }
  storage.managed.tier_fence.include(done);
  const bool ahead = kind == EventKind::kPrefetch;
  changes_.take_block(storage, block, done,
                      ahead ? StorageEvent::Kind::kPrefetched : StorageEvent::Kind::kReloaded);
  ++context_.stats.reloads;
  context_.stats.reload_bytes += storage.size();
  if (!context_.options.overlap) context_.device.wait(StreamId::kCompute, done);
}

bool Transfers::prefetch(Storage& storage, std::optional<Offset> at) {
  context_.effort.stop_here();
  const auto place = at ? context_.arena.allocate_at(*at, storage.size(), storage.category)
                        : context_.arena.allocate(storage.size(), storage.category);
  if (!place) return false;
  NewBlock block(context_.arena, storage.category, *place);
  context_.device.wait(StreamId::kReload, block.fence());
  reload(storage, std::move(block), EventKind::kPrefetch, Reason::kNone);
  changes_.set_prefetched(storage, true);
  ++context_.stats.prefetches;
  return true;
}

// The nearest tier with space. Copies of resident storages make way first: nothing is lost.
std::optional<TierSpace> Transfers::reserve_on_tier(Bytes size, Tier*& tier) {
  for (Tier* candidate : context_.tiers) {
    if (size > candidate->limit()) continue;
    tier = candidate;
    if (auto space = tier->reserve(size)) return space;
    std::vector<Storage*> clean;
    for (Storage* s :
         changes_.counts().clean > 0 ? changes_.by_address() : std::vector<Storage*>()) {
      if (s->managed.tier == tier) clean.push_back(s);
    }
    std::sort(clean.begin(), clean.end(), is_older);
    for (Storage* storage : clean) {
      changes_.drop_copy(*storage);
      if (auto space = tier->reserve(size)) return space;
    }
  }
  return std::nullopt;
}

// The last resort on full tiers: storages that can be recomputed lose their copies.
void Transfers::drop_copies_for(Bytes size) {
  std::vector<Storage*> copied;
  context_.storages.for_each([&](Storage& s) {
    context_.effort.examine();
    if (s.managed.offloaded() && s.managed.claims == 0) copied.push_back(&s);
  });
  Bytes freed{0};
  for (size_t i = copied.size(); i-- > 0 && freed < size;) {
    Storage& storage = *copied[i];
    if (drop_copy(storage, Reason::kAustere)) freed += storage.size();
  }
}

// Evicts an offloaded storage instead: it is recomputed when it is needed.
bool Transfers::drop_copy(Storage& storage, Reason reason) {
  if (!storage.managed.offloaded() || !can_evict(storage)) return false;
  context_.events.tell(StorageEvent::Kind::kCopyDropped, &storage, reason);
  changes_.drop_copy(storage);
  context_.record(EventKind::kDropCopy, reason, storage, StreamId::kCompute, Nanos(0));
  return true;
}

}  // namespace tidemark
