// Finding space in the arena.
#include <algorithm>
#include <utility>

#include "runtime/residency/new_block.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/walk.h"

namespace tidemark {

// `user` is the stream that will write the block first; it waits for the block's last users.
Residency::NewBlock Residency::allocate(Bytes size, Category category, StreamId user,
                                        const char* for_whom) {
  auto place = arena_.allocate(size, category);
  if (!place) place = make_room(size, category);
  if (!place) throw_out_of_memory(size, for_whom);
  NewBlock block(arena_, category, *place);
  device_.wait(user, block.fence());
  return block;
}

std::optional<Allocation> Residency::make_room(Bytes size, Category category) {
  if (!options_.managed || size > arena_.offsets().capacity()) return std::nullopt;
  if (!options_.austere_only && release_best(size)) return arena_.allocate(size, category);
  ++stats_.austere_rooms;
  release_austerely(align_up(size));
  slide_for(size, /*at_any_cost=*/true);
  return arena_.allocate(size, category);
}

// As the policy chooses, until a hole of `size` is there.
bool Residency::release_best(Bytes size) {
  // What cannot be released now; it is offered again later, however this ends.
  struct SetAside {
    ReleasePolicy& policy;
    std::vector<Storage*> storages;
    ~SetAside() {
      for (Storage* storage : storages) policy.add(*storage);
    }
  } unreleasable{policy_, {}};
  bool found = false;
  while (!(found = arena_.offsets().fits(size) || slide_for(size, /*at_any_cost=*/false))) {
    if (!policy_.may_release_now(*this)) break;
    Storage* storage = policy_.choose(*this);
    if (!storage) break;
    if (release(*storage, Reason::kNoRoom)) continue;
    policy_.remove(*storage);
    unreleasable.storages.push_back(storage);
  }
  return found;
}

// The austere schedule: the stalest first, by fixed rules, until sliding the rest together
// would give the room. What a recomputation under way will read is copied out rather than
// evicted, so that it always gets on.
void Residency::release_austerely(Bytes size) {
  std::vector<Storage*> resident;
  for_each_storage([&](Storage& s) {
    if (s.resident() && s.pins_ == 0 && s.category != Category::kWorkspace)
      resident.push_back(&s);
  });
  std::sort(resident.begin(), resident.end(), [](const Storage* a, const Storage* b) {
    return a->last_access != b->last_access ? a->last_access < b->last_access
                                            : a->id() < b->id();
  });
  for (Storage* storage : resident) {
    if (arena_.offsets().unused() >= size) return;
    release_austerely(*storage);
  }
}

void Residency::release_austerely(Storage& storage) {
  if (storage.tier_) {
    drop_clean(storage, Reason::kAustere);
  } else if (can_offload(storage) && offload(storage, Reason::kAustere)) {
    return;
  } else if (storage.wanted_ == 0 && can_evict(storage)) {
    evict(storage, Reason::kAustere);
  } else if (can_offload(storage)) {
    give_up_copies_for(storage.size());
    offload(storage, Reason::kAustere);
  }
}

// Slides blocks down to join holes into one of at least `size`: the run of neighbouring blocks
// that costs the least to move.
//
//   | a |  hole  | b |hole| c |     need: both holes
//   | a | b |     hole    | c |     b has moved
bool Residency::slide_for(Bytes size, bool at_any_cost) {
  const OffsetAllocator& offsets = arena_.offsets();
  size = align_up(size);
  if (offsets.fits(size)) return true;
  if (!(options_.slide || at_any_cost) || offsets.unused() < size) return false;
  std::vector<Storage*> placed;
  for_each_storage([&](Storage& s) {
    if (s.resident()) placed.push_back(&s);
  });
  std::sort(placed.begin(), placed.end(), [](const Storage* a, const Storage* b) {
    return a->block_.offset < b->block_.offset;
  });
  // The hole left by moving placed[i..j] lies between the end of i-1 and the start of j+1.
  auto start_of_gap = [&](size_t i) {
    return i == 0 ? Offset(0) : placed[i - 1]->block_.end();
  };
  auto end_of_gap = [&](size_t j) {
    return j + 1 == placed.size() ? Offset(offsets.capacity().count())
                                  : placed[j + 1]->block_.offset;
  };
  Bytes least = offsets.capacity() + kAlignment;
  size_t first = 0, last = 0;
  Bytes moved{0};
  for (size_t i = 0, j = 0; j < placed.size(); ++j) {
    moved += placed[j]->size();
    while (i <= j && end_of_gap(j) - start_of_gap(i) - moved >= size) {
      if (moved < least) {
        least = moved;
        first = i;
        last = j;
      }
      moved -= placed[i++]->size();
    }
  }
  if (least > offsets.capacity()) return false;
  const Nanos cost = costs_.modelled({0, least * 2, false});
  if (!at_any_cost && cost > costs_.offload_time(size)) return false;
  Offset to = start_of_gap(first);
  for (size_t k = first; k <= last; ++k) {
    if (placed[k]->block_.offset != to) move_block(*placed[k], to);
    to = placed[k]->block_.end();
  }
  ++stats_.compactions;
  return offsets.fits(size);
}

void Residency::move_block(Storage& storage, Offset to) {
  const Block from = storage.block_;
  arena_.free(from, storage.category, storage.touched_);
  const auto place = arena_.allocate_at(to, storage.size(), storage.category);
  TIDEMARK_CHECK(place.has_value(), "a block slides into the hole before it");
  Event done;
  try {
    device_.wait(StreamId::kCompute, place->fence);
    const uint64_t tag =
        log(EventKind::kCompact, Reason::kNoRoom, storage, StreamId::kCompute, Nanos(0));
    done = device_.copy(StreamId::kCompute, {arena_.address(to), arena_.address(from.offset),
                                             storage.bytes(), tag});
  } catch (...) {  // it stays where it was
    arena_.free(place->block, storage.category, place->fence);
    arena_.allocate_at(from.offset, from.size, storage.category);
    throw;
  }
  storage.block_ = place->block;
  // The space it leaves is read by the move.
  arena_.hold({place->block.end(), from.end() - place->block.end()}, done);
  storage.written_ = done;
  storage.touched_ = Fence(done);
}

void Residency::throw_out_of_memory(Bytes size, const char* for_whom) {
  log_.record(
      {.kind = EventKind::kOutOfMemory, .name = for_whom, .bytes = size, .issued = clock_});
  throw OutOfMemory("[" + std::string(for_whom) + "] out of memory: asked for " +
                        format_bytes(size) + ", budget " +
                        format_bytes(arena_.offsets().capacity()) + "\n" + describe_memory(),
                    size, arena_.offsets().capacity());
}

}  // namespace tidemark
