#include "runtime/residency/space.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/residency/describe_memory.h"
#include "runtime/residency/memory_timer.h"

namespace tidemark {
namespace {

// Holes that are compared in the time it takes to examine one storage.
constexpr size_t kHolesAtOnce = 4;

}  // namespace

// `user` is the stream that will write the block first; it waits for the block's last users.
NewBlock Space::allocate(Storage& storage, StreamId user, PlacementCursor& placement) {
  const MemoryTimer timer(context_);
  context_.effort.stop_here();
  const Bytes size = storage.size();
  const Category category = storage.category;
  const std::optional<Offset> at = placement.next();
  if (at && plan_is_open()) {
    // The open plan has one fence. Compute runs in order, so it has to wait for copies alone,
    // and only once for each.
    const Fence& before = context_.arena.plan_fence();
    const auto copies = [](const Fence& fence) {
      return std::pair(fence[StreamId::kOffload], fence[StreamId::kReload]);
    };
    if (user != StreamId::kCompute || copies(before) != copies(plan_waited_)) {
      context_.device.wait(user, before);
      if (user == StreamId::kCompute) plan_waited_ = before;
    }
    return NewBlock(context_.arena, category, {context_.arena.place(*at, size, category), {}});
  }
  std::optional<Allocation> place;
  if (at) {
    place = context_.arena.allocate_at(*at, size, category);
    if (!place) placement.miss();
  } else if (placement.compact()) {
    place = allocate_compact(storage);
  }
  if (!place) place = context_.arena.allocate(size, category);
  if (!place) place = make_space(size, category);
  while (!place && release_claims_()) place = make_space(size, category);
  if (!place) throw_out_of_memory(storage);
  NewBlock block(context_.arena, category, *place);
  context_.device.wait(user, block.fence());
  return block;
}

std::optional<Allocation> Space::allocate_compact(const Storage& storage) {
  compact_for(storage.size(), /*at_any_cost=*/true);
  const auto place = context_.arena.allocate(storage.size(), storage.category);
  return place ? place : make_space(storage.size(), storage.category);
}

std::optional<Allocation> Space::make_space(Bytes size, Category category) {
  if (!context_.options.managed || size > context_.arena.offsets().capacity())
    return std::nullopt;
  // A block outside the plan found no space beside it: blocks have to compact_block, the plan's
  // too.
  close_plan();
  if (release_best(size)) return context_.arena.allocate(size, category);
  ++context_.stats.last_resorts;
  release_as_last_resort(align_up(size));
  compact_for(size, /*at_any_cost=*/true);
  return context_.arena.allocate(size, category);
}

// Releases what the policy chooses until there is a hole of `size`.
bool Space::release_best(Bytes size) {
  // Storages that cannot be released now. They are offered again later in any case.
  struct SetAside {
    ReleasePolicy& policy;
    std::vector<Storage*> storages;
    ~SetAside() {
      for (Storage* storage : storages) policy.add(*storage);
    }
  } unreleasable{context_.policy, {}};
  bool found = false;
  while (!(found = context_.arena.offsets().fits(size) || release_window(size) ||
                   compact_for(size, /*at_any_cost=*/false))) {
    if (!context_.policy.may_release_now(*context_.view)) break;
    Storage* storage = context_.policy.choose(*context_.view);
    if (!storage) break;
    if (transfers_.release(*storage, Reason::kNoSpace)) continue;
    context_.policy.remove(*storage);
    unreleasable.storages.push_back(storage);
  }
  return found;
}

// The last resort: releases the stalest first, by fixed rules, until compaction would give the
// space. Storages that a recomputation under way will read are copied out, not evicted, so that
// it always makes progress. Without a tier, gradients go after all else: to compute one again
// takes all of backward before it, far more memory than the forward pass does again.
void Space::release_as_last_resort(Bytes size) {
  std::vector<Storage*> resident = changes_.by_address();
  std::erase_if(resident, [](const Storage* s) {
    return s->managed.pins > 0 || s->category == Category::kWorkspace;
  });
  const auto goes_last = [evicts = context_.tiers.empty()](const Storage* s) {
    return evicts && s->category == Category::kGradient;
  };
  // A heap, as a few usually suffice.
  const auto fresher = [&](const Storage* a, const Storage* b) {
    if (goes_last(a) != goes_last(b)) return goes_last(a);
    return a->last_access != b->last_access ? a->last_access > b->last_access
                                            : a->id() > b->id();
  };
  std::make_heap(resident.begin(), resident.end(), fresher);
  while (!resident.empty() && context_.arena.offsets().unused() < size) {
    std::pop_heap(resident.begin(), resident.end(), fresher);
    transfers_.release_as_last_resort(*resident.back());
    resident.pop_back();
  }
}

// The first and the last of the holes that sliding blocks down would join into one.
struct Space::Compaction {
  Block first, last;
  Nanos cost{0};
};

// The compaction that moves the least. Of those that end at the same hole, it begins at the
// highest hole that suffices.
std::optional<Space::Compaction> Space::cheapest_compaction(Bytes size) const {
  if (context_.arena.offsets().unused() < size) return std::nullopt;
  std::vector<Block>& holes = holes_;
  holes.clear();
  context_.arena.offsets().for_each_hole([&](const Block& hole) { holes.push_back(hole); });
  context_.effort.examine(static_cast<int64_t>(holes.size() / kHolesAtOnce));

  std::optional<Compaction> best;
  Bytes least{0}, open{0};  // moved; in holes[first] to holes[last]
  for (size_t first = 0, last = 0; last < holes.size(); ++last) {
    open += holes[last].size;
    while (open - holes[first].size >= size) open -= holes[first++].size;
    if (open < size) continue;
    const Bytes moved = holes[last].end() - holes[first].offset - open;
    if (best && moved >= least) continue;
    best = Compaction{holes[first], holes[last], Nanos(0)};
    least = moved;
  }
  if (best) best->cost = context_.costs.move_time(least);
  return best;
}

// Slides blocks down to join holes into one of at least `size`: the run of neighbouring blocks
// that costs the least to move.
//
//   | a |  hole  | b |hole| c |     need: both holes
//   | a | b |     hole    | c |     b has moved
bool Space::compact_for(Bytes size, bool at_any_cost) {
  const OffsetAllocator& offsets = context_.arena.offsets();
  size = align_up(size);
  if (offsets.fits(size)) return true;
  if (!(context_.options.compact || at_any_cost)) return false;
  const std::optional<Compaction> run = cheapest_compaction(size);
  if (!run || (!at_any_cost && run->cost > context_.costs.offload_time(size))) return false;
  std::vector<Storage*> blocks;
  for (auto place = changes_.placed().first_from(run->first.offset);
       place != changes_.placed().end() && place->offset < run->last.offset; ++place) {
    blocks.push_back(place->value);
  }
  Offset to = run->first.offset;
  for (Storage* block : blocks) {
    compact_block(*block, to);
    to = block->managed.block.end();
  }
  ++context_.stats.compactions;
  return offsets.fits(size);
}

// Releases a run of neighbouring blocks, so that they leave one hole (Coop: Zhang et al.,
// 2023), if the policy knows prices and this costs less than sliding.
bool Space::release_window(Bytes size) {
  if (!context_.policy.knows_prices() || !context_.policy.may_release_now(*context_.view))
    return false;
  size = align_up(size);
  const std::vector<Storage*> blocks = changes_.by_address();
  // The hole left by blocks[i..j] lies between the end of i-1 and the start of j+1.
  const auto begin = [&](size_t i) {
    return i == 0 ? Offset(0) : blocks[i - 1]->managed.block.end();
  };
  const auto end = [&](size_t j) {
    return j + 1 == blocks.size() ? Offset(context_.arena.offsets().capacity().count())
                                  : blocks[j + 1]->managed.block.offset;
  };
  // A run has to cost less than `least`; blocks[first..last] is the cheapest run so far.
  std::optional<Nanos> least;
  if (context_.options.compact) {
    if (const auto compact_block = cheapest_compaction(size)) least = compact_block->cost;
  }
  bool found = false;
  size_t first = 0, last = 0;
  std::vector<Nanos> prices(blocks.size());
  for (size_t start = 0; start < blocks.size();) {
    if (!context_.view->may_release(*blocks[start])) {
      ++start;
      continue;
    }
    size_t stop = start + 1;
    while (stop < blocks.size() && context_.view->may_release(*blocks[stop])) ++stop;
    // Prices matter only where the releasable blocks together leave a large enough hole.
    const size_t from = end(stop - 1) - begin(start) >= size ? start : stop;
    Nanos total{0};
    for (size_t i = from, j = from; j < stop; ++j) {
      const auto price = context_.policy.price(*context_.view, *blocks[j]);
      if (!price || (least && *price >= *least)) {
        i = j + 1;
        total = Nanos(0);
        continue;
      }
      prices[j] = *price;
      total += *price;
      for (; i <= j && end(j) - begin(i) >= size; ++i) {
        // If the rest of a run costs nothing, a part of the run is better than the run.
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
    if (!transfers_.release(*blocks[k], Reason::kNoSpace)) return false;
  }
  return context_.arena.offsets().fits(size);
}

bool Space::open_plan(Offset base, Bytes size) {
  plan_waited_ = {};
  return context_.arena.open_plan({base, size});
}

void Space::close_plan() {
  if (!plan_is_open()) return;
  std::vector<Storage*> live;
  context_.storages.for_each([&](Storage& s) {
    if (s.resident() && context_.arena.in_plan(s.managed.block)) live.push_back(&s);
  });
  std::vector<Block> blocks;
  blocks.reserve(live.size());
  for (const Storage* storage : live) blocks.push_back(storage->managed.block);
  context_.arena.close_plan(blocks);
  for (Storage* storage : live) changes_.enter(*storage);
}

Offset Space::compact_all() {
  Offset to(0);
  for (Storage* storage : changes_.by_address()) {
    compact_block(*storage, to);
    to = storage->managed.block.end();
  }
  return to;
}

bool Space::copy_in(Storage& storage, std::optional<Offset> at) {
  return storage.managed.offloaded() &&
         (at || compact_for(storage.size(), /*at_any_cost=*/true)) &&
         transfers_.prefetch(storage, at);
}

void Space::compact_block(Storage& storage, Offset to) {
  if (storage.managed.block.offset == to) return;
  TIDEMARK_CHECK(move_block(storage, to), "a block can move into the hole before it");
}

bool Space::move(Storage& storage, Offset to) {
  if (!storage.resident()) return false;
  const Block& from = storage.managed.block;
  const bool up_onto_itself = to > from.offset && to < from.end();
  return from.offset == to || (!up_onto_itself && move_block(storage, to));
}

// Returns false, with the block where it was, if another block is in the way or an open plan
// has it. REQUIRES: a move onto a part of the block itself goes down.
bool Space::move_block(Storage& storage, Offset to) {
  const Block from = storage.managed.block;
  if (context_.arena.in_plan(from)) return false;
  context_.arena.free(from, storage.category, storage.managed.touched);
  const auto stay = [&] {
    context_.arena.allocate_at(from.offset, from.size, storage.category);
  };
  const auto place = context_.arena.allocate_at(to, storage.size(), storage.category);
  if (!place) {
    stay();
    return false;
  }
  Event done;
  try {
    context_.device.wait(StreamId::kCompute, place->fence);
    context_.device.wait(StreamId::kCompute, storage.managed.written);
    const uint64_t tag = context_.record(EventKind::kCompact, Reason::kNoSpace, storage,
                                         StreamId::kCompute, Nanos(0));
    done = context_.device.copy(
        StreamId::kCompute, {context_.arena.address(to), context_.arena.address(from.offset),
                             storage.bytes(), tag});
  } catch (...) {
    context_.arena.free(place->block, storage.category, place->fence);
    stay();
    throw;
  }
  // The move still reads the space that the block leaves.
  const bool overlap = place->block.offset <= from.offset && place->block.end() > from.offset;
  const Offset left = overlap ? place->block.end() : from.offset;
  context_.arena.hold({left, from.end() - left}, done);
  changes_.move_block(storage, place->block, done);
  return true;
}

// The top of the highest large enough hole: the least in the way of blocks that go to the lower
// end.
std::optional<Offset> Space::top_of_highest_hole(Bytes size) const {
  const std::vector<Block> holes = context_.arena.offsets().holes();
  const auto hole = std::find_if(holes.rbegin(), holes.rend(),
                                 [&](const Block& block) { return block.size >= size; });
  if (hole == holes.rend()) return std::nullopt;
  return hole->end() - size;
}

bool Space::relocate(const std::vector<Target>& targets) {
  const MemoryTimer timer(context_);
  std::vector<Target> misplaced;
  for (const Target& target : targets) {
    Storage& s = *target.storage;
    if (!s.resident()) continue;
    if (!target.at && !transfers_.release_by(s, Action::kOffload, Reason::kPlan)) return false;
    if (target.at && s.managed.block.offset != *target.at) misplaced.push_back(target);
  }
  const auto moved = [&](const Target& target) { return move(*target.storage, *target.at); };
  size_t detours = 0;
  while (!misplaced.empty()) {
    if (std::erase_if(misplaced, moved) > 0) continue;
    // All are in each other's way: one moves aside for now, or goes by way of a tier.
    Storage& s = *misplaced.back().storage;
    const auto elsewhere =
        detours < targets.size() ? top_of_highest_hole(s.size()) : std::nullopt;
    if (elsewhere) {
      ++detours;
      if (!move_block(s, *elsewhere)) return false;
      std::rotate(misplaced.begin(), misplaced.end() - 1, misplaced.end());  // then the next
    } else if (transfers_.release_by(s, Action::kOffload, Reason::kPlan)) {
      misplaced.pop_back();
    } else {
      return false;
    }
  }
  return std::all_of(targets.begin(), targets.end(), [&](const Target& target) {
    Storage& s = *target.storage;
    if (!target.at || s.resident()) return true;
    if (!s.managed.offloaded() || !transfers_.prefetch(s, target.at)) return false;
    changes_.set_prefetched(s, false);
    return true;
  });
}

void Space::throw_out_of_memory(const Storage& storage) {
  const Bytes size = storage.size(), budget = context_.arena.offsets().capacity();
  context_.log.record({.kind = EventKind::kOutOfMemory,
                       .name = storage.name,
                       .op = storage.origin(),
                       .bytes = size,
                       .issued = context_.clock});
  // " in layer3.2.conv1", " for layer3.2.conv1.weight"
  const std::string op = storage.origin(), name = storage.name;
  const size_t path = name.find(": " + op);
  const std::string where = path != std::string::npos ? " in " + name.substr(0, path)
                            : name != op              ? " for " + name
                                                      : "";
  const std::string asked = format_unlike(size, context_.arena.offsets().largest_hole());
  throw OutOfMemory("[" + op + "] out of memory" + where + ": asked for " + asked +
                        ", budget " + format_bytes(budget) + "\n" +
                        describe_memory(context_, transfers_, size),
                    size, budget);
}

}  // namespace tidemark
