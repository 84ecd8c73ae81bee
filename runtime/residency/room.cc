// Finding space in the arena.
#include <algorithm>
#include <utility>

#include "runtime/residency/memory_timer.h"
#include "runtime/residency/new_block.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/walk.h"

namespace tidemark {
namespace {

// Pointers that are copied in the time in which a storage is examined.
constexpr size_t kCopiedAtOnce = 8;
// Holes that are compared in that time.
constexpr size_t kHolesAtOnce = 4;

}  // namespace

// `user` is the stream that will write the block first; it waits for the block's last users.
Residency::NewBlock Residency::allocate(Storage& storage, StreamId user,
                                        PlacementCursor& placement) {
  const MemoryTimer timer(*this);
  stop_here();
  const Bytes size = storage.size();
  const Category category = storage.category;
  const std::optional<Offset> at = placement.next();
  if (planned_ && at) {
    // The open plan has one fence. Compute runs in order: it has copies alone to wait for, and
    // for each but once.
    const Fence& before = arena_.plan_fence();
    const auto copies = [](const Fence& fence) {
      return std::pair(fence[StreamId::kOffload], fence[StreamId::kReload]);
    };
    if (user != StreamId::kCompute || copies(before) != copies(plan_waited_)) {
      device_.wait(user, before);
      if (user == StreamId::kCompute) plan_waited_ = before;
    }
    return NewBlock(arena_, category, {arena_.place(*at, size, category), {}});
  }
  std::optional<Allocation> place;
  if (at) {
    place = arena_.allocate_at(*at, size, category);
    if (!place) placement.miss();
  } else if (placement.compact()) {
    place = allocate_compact(storage);
  }
  if (!place) place = arena_.allocate(size, category);
  if (!place) place = make_room(size, category);
  while (!place && give_up_claims()) place = make_room(size, category);
  if (!place) throw_out_of_memory(storage);
  NewBlock block(arena_, category, *place);
  device_.wait(user, block.fence());
  return block;
}

std::optional<Allocation> Residency::allocate_compact(const Storage& storage) {
  slide_for(storage.size(), /*at_any_cost=*/true);
  const auto place = arena_.allocate(storage.size(), storage.category);
  return place ? place : make_room(storage.size(), storage.category);
}

std::optional<Allocation> Residency::make_room(Bytes size, Category category) {
  if (!options_.managed || size > arena_.offsets().capacity()) return std::nullopt;
  // What is outside of the plan has no room beside it: blocks have to slide, the plan's too.
  close_plan();
  if (release_best(size)) return arena_.allocate(size, category);
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
  while (!(found = arena_.offsets().fits(size) || release_window(size) ||
                   slide_for(size, /*at_any_cost=*/false))) {
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
  std::vector<Storage*> resident = placed();
  std::erase_if(resident, [](const Storage* s) {
    return s->pins_ > 0 || s->category == Category::kWorkspace;
  });
  // A heap, as a few are enough mostly.
  const auto fresher = [](const Storage* a, const Storage* b) {
    return a->last_access != b->last_access ? a->last_access > b->last_access
                                            : a->id() > b->id();
  };
  std::make_heap(resident.begin(), resident.end(), fresher);
  while (!resident.empty() && arena_.offsets().unused() < size) {
    std::pop_heap(resident.begin(), resident.end(), fresher);
    release_austerely(*resident.back());
    resident.pop_back();
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

// The blocks in the arena, by offset. A copy: what is done with them may move them.
std::vector<Storage*> Residency::placed() const {
  examined_ += static_cast<int64_t>(placed_.size() / kCopiedAtOnce);
  std::vector<Storage*> blocks;
  blocks.reserve(placed_.size());
  for (const auto& [offset, storage] : placed_) blocks.push_back(storage);
  return blocks;
}

void Residency::put_in_place(Storage& storage) {
  placed_.insert(storage.block_.offset, &storage);
}

void Residency::take_from_place(Storage& storage) {
  const auto place = placed_.find(storage.block_.offset);
  TIDEMARK_CHECK(place != placed_.end() && place->value == &storage,
                 "a resident storage has its place");
  placed_.erase(place);
}

// The holes between which blocks may be slid down to make one of all of them.
struct Residency::Slide {
  Block first, last;
  Nanos cost{0};
};

// The one that moves the least. Of those that end at a hole, it begins at the highest hole that
// suffices.
std::optional<Residency::Slide> Residency::cheapest_slide(Bytes size) const {
  if (arena_.offsets().unused() < size) return std::nullopt;
  std::vector<Block>& holes = holes_;
  holes.clear();
  arena_.offsets().for_each_hole([&](const Block& hole) { holes.push_back(hole); });
  examined_ += static_cast<int64_t>(holes.size() / kHolesAtOnce);

  std::optional<Slide> best;
  Bytes least{0}, open{0};  // moved; in holes[first] to holes[last]
  for (size_t first = 0, last = 0; last < holes.size(); ++last) {
    open += holes[last].size;
    while (open - holes[first].size >= size) open -= holes[first++].size;
    if (open < size) continue;
    const Bytes moved = holes[last].end() - holes[first].offset - open;
    if (best && moved >= least) continue;
    best = Slide{holes[first], holes[last], Nanos(0)};
    least = moved;
  }
  if (best) best->cost = costs_.move_time(least);
  return best;
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
  if (!(options_.slide || at_any_cost)) return false;
  const std::optional<Slide> run = cheapest_slide(size);
  if (!run || (!at_any_cost && run->cost > costs_.offload_time(size))) return false;
  std::vector<Storage*> blocks;
  for (auto place = placed_.first_from(run->first.offset);
       place != placed_.end() && place->offset < run->last.offset; ++place) {
    blocks.push_back(place->value);
  }
  Offset to = run->first.offset;
  for (Storage* block : blocks) {
    slide(*block, to);
    to = block->block_.end();
  }
  ++stats_.compactions;
  return offsets.fits(size);
}

// Releases a run of neighbouring blocks, so that what is freed is one hole (Coop: Zhang et al.,
// 2023), if the policy knows prices and it costs less than sliding does.
bool Residency::release_window(Bytes size) {
  if (!policy_.knows_prices() || !policy_.may_release_now(*this)) return false;
  size = align_up(size);
  const std::vector<Storage*> blocks = placed();
  // The hole left by blocks[i..j] lies between the end of i-1 and the start of j+1.
  const auto begin = [&](size_t i) { return i == 0 ? Offset(0) : blocks[i - 1]->block_.end(); };
  const auto end = [&](size_t j) {
    return j + 1 == blocks.size() ? Offset(arena_.offsets().capacity().count())
                                  : blocks[j + 1]->block_.offset;
  };
  // What a run has to cost less than; then the cheapest by now, blocks[first..last].
  std::optional<Nanos> least;
  if (options_.slide) {
    if (const auto slide = cheapest_slide(size)) least = slide->cost;
  }
  bool found = false;
  size_t first = 0, last = 0;
  std::vector<Nanos> prices(blocks.size());
  for (size_t start = 0; start < blocks.size();) {
    if (!may_release(*blocks[start])) {
      ++start;
      continue;
    }
    size_t stop = start + 1;
    while (stop < blocks.size() && may_release(*blocks[stop])) ++stop;
    // Only where those that may go make such a hole together, prices matter.
    const size_t from = end(stop - 1) - begin(start) >= size ? start : stop;
    Nanos total{0};
    for (size_t i = from, j = from; j < stop; ++j) {
      const auto price = policy_.price(*this, *blocks[j]);
      if (!price || (least && *price >= *least)) {
        i = j + 1;
        total = Nanos(0);
        continue;
      }
      prices[j] = *price;
      total += *price;
      for (; i <= j && end(j) - begin(i) >= size; ++i) {
        // For nothing, a part of a run is better than the run.
        if (!least || total < *least || (found && total == *least && last == j)) {
          found = true;
          least = total;
          first = i;
          last = j;
        }
        total -= prices[i];
      }
    }
    start = stop;
  }
  if (!found) return false;
  for (size_t k = first; k <= last; ++k) {
    if (!release(*blocks[k], Reason::kNoRoom)) return false;
  }
  return arena_.offsets().fits(size);
}

void Residency::open_plan(Offset base, Bytes size) {
  TIDEMARK_CHECK(arena_.open_plan({base, size}), "a plan's range is unused");
  planned_ = true;
  plan_waited_ = {};
}

void Residency::close_plan() {
  if (!std::exchange(planned_, false)) return;
  std::vector<Block> live;
  for (const Storage* storage : placed()) {
    if (arena_.in_plan(storage->block_)) live.push_back(storage->block_);
  }
  arena_.close_plan(live);
}

Bytes Residency::bytes_in_use() const {
  Bytes sum{0};
  for (const Storage* s = storages_; s; s = s->next_) {
    const bool empty = s->residence_ == Residence::kEmpty;
    if (s->users_ > 0 && !empty) sum += s->size();
  }
  return sum;
}

Offset Residency::pack() {
  const auto slide_all = [&] {
    Offset to(0);
    for (Storage* storage : placed()) {
      slide(*storage, to);
      to = storage->block_.end();
    }
    return to;
  };
  std::vector<IntrusivePtr<Storage>> away;
  for_each_storage([&](Storage& s) {
    const bool gone =
        s.residence_ == Residence::kOffloaded || s.residence_ == Residence::kEvicted;
    if (gone && s.users_ > 0) away.emplace_back(&s);
  });
  const OffsetAllocator& offsets = arena_.offsets();
  if (away.empty() && offsets.packed()) return Offset(0) + offsets.used();
  slide_all();
  for (const auto& storage : away) fetch(*storage, Reason::kNeeded);
  return slide_all();
}

void Residency::slide(Storage& storage, Offset to) {
  if (storage.block_.offset == to) return;
  TIDEMARK_CHECK(move_block(storage, to), "a block slides into the hole before it");
}

bool Residency::move(Storage& storage, Offset to) {
  if (!storage.resident()) return false;
  const Block& from = storage.block_;
  const bool up_onto_itself = to > from.offset && to < from.end();
  return from.offset == to || (!up_onto_itself && move_block(storage, to));
}

// False, and it stays where it was, if another block is in the way, or an open plan has it.
// REQUIRES: down, if it is to lie on a part of where it lies.
bool Residency::move_block(Storage& storage, Offset to) {
  const Block from = storage.block_;
  if (arena_.in_plan(from)) return false;
  arena_.free(from, storage.category, storage.touched_);
  const auto stay = [&] { arena_.allocate_at(from.offset, from.size, storage.category); };
  const auto place = arena_.allocate_at(to, storage.size(), storage.category);
  if (!place) {
    stay();
    return false;
  }
  Event done;
  try {
    device_.wait(StreamId::kCompute, place->fence);
    device_.wait(StreamId::kCompute, storage.written_);
    const uint64_t tag =
        log(EventKind::kCompact, Reason::kNoRoom, storage, StreamId::kCompute, Nanos(0));
    done = device_.copy(StreamId::kCompute, {arena_.address(to), arena_.address(from.offset),
                                             storage.bytes(), tag});
  } catch (...) {
    arena_.free(place->block, storage.category, place->fence);
    stay();
    throw;
  }
  take_from_place(storage);
  storage.block_ = place->block;
  put_in_place(storage);
  // The space it leaves is read by the move.
  const bool overlap = place->block.offset <= from.offset && place->block.end() > from.offset;
  const Offset left = overlap ? place->block.end() : from.offset;
  arena_.hold({left, from.end() - left}, done);
  storage.written_ = done;
  storage.touched_ = Fence(done);
  tell(StorageEvent::Kind::kMoved, &storage, Reason::kNoRoom);
  return true;
}

std::vector<IntrusivePtr<Storage>> Residency::in_use() const {
  std::vector<IntrusivePtr<Storage>> found;
  for (Storage* s = storages_; s; s = s->next_) {
    if (s->users_ > 0 && s->residence_ != Residence::kEmpty) found.emplace_back(s);
  }
  return found;
}

// Of those that are large enough: where it is least in the way of what goes to the lower end.
std::optional<Offset> Residency::top_of_highest_hole(Bytes size) const {
  const std::vector<Block> holes = arena_.offsets().holes();
  const auto hole = std::find_if(holes.rbegin(), holes.rend(),
                                 [&](const Block& block) { return block.size >= size; });
  if (hole == holes.rend()) return std::nullopt;
  return hole->end() - size;
}

bool Residency::arrange(const std::vector<Target>& targets) {
  const MemoryTimer timer(*this);
  std::vector<Target> misplaced;
  for (const Target& target : targets) {
    Storage& s = *target.storage;
    if (!s.resident()) continue;
    if (!target.at && !release_by(s, Action::kOffload, Reason::kPlan)) return false;
    if (target.at && s.block_.offset != *target.at) misplaced.push_back(target);
  }
  const auto moved = [&](const Target& target) { return move(*target.storage, *target.at); };
  size_t detours = 0;
  while (!misplaced.empty()) {
    if (std::erase_if(misplaced, moved) > 0) continue;
    // Each is in another's way: one goes elsewhere for a moment, or all by way of a tier.
    Storage& s = *misplaced.back().storage;
    const auto elsewhere =
        detours < targets.size() ? top_of_highest_hole(s.size()) : std::nullopt;
    if (elsewhere) {
      ++detours;
      if (!move_block(s, *elsewhere)) return false;
      std::rotate(misplaced.begin(), misplaced.end() - 1, misplaced.end());  // then the next
    } else if (release_by(s, Action::kOffload, Reason::kPlan)) {
      misplaced.pop_back();
    } else {
      return false;
    }
  }
  return std::all_of(targets.begin(), targets.end(), [&](const Target& target) {
    Storage& s = *target.storage;
    if (!target.at || s.resident()) return true;
    if (s.residence_ != Residence::kOffloaded || !prefetch(s, target.at)) return false;
    s.prefetched_ = false;
    --prefetched_;
    return true;
  });
}

void Residency::throw_out_of_memory(const Storage& storage) {
  const Bytes size = storage.size(), budget = arena_.offsets().capacity();
  log_.record({.kind = EventKind::kOutOfMemory,
               .name = storage.name,
               .op = storage.origin(),
               .bytes = size,
               .issued = clock_});
  // " in layer3.2.conv1", " for layer3.2.conv1.weight"
  const std::string op = storage.origin(), name = storage.name;
  const size_t path = name.find(": " + op);
  const std::string where = path != std::string::npos ? " in " + name.substr(0, path)
                            : name != op              ? " for " + name
                                                      : "";
  const std::string asked = format_unlike(size, arena_.offsets().largest_hole());
  throw OutOfMemory("[" + op + "] out of memory" + where + ": asked for " + asked +
                        ", budget " + format_bytes(budget) + "\n" + describe_memory(size),
                    size, budget);
}

}  // namespace tidemark
