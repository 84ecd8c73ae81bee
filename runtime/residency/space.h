// Finding space in the arena.
//
// Making room, in this order, until the allocation fits:
//   1. release a run of neighbouring blocks, if the policy prices one below sliding; or slide
//      blocks together, where there is room enough but in pieces and moving is cheaper than
//      releasing;
//   2. release what the policy chooses;
//   3. the austere schedule: release everything that is not held, in a fixed order and by
//      fixed rules, slide the rest together, try once more;
//   4. have recomputations under way give up their claims, and begin again;
//   5. OutOfMemory, which says why. Nothing has changed for the caller.
//
// Threads: the session's issuing thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runtime/residency/context.h"
#include "runtime/residency/new_block.h"
#include "runtime/residency/placement.h"
#include "runtime/residency/state_changes.h"
#include "runtime/residency/transfers.h"

namespace tidemark {

class Space {
 public:
  // `release_claims`: step 4; false if there are none to give up.
  Space(ResidencyContext& context, StateChanges& changes, Transfers& transfers,
        std::function<bool()> release_claims)
      : context_(context),
        changes_(changes),
        transfers_(transfers),
        release_claims_(std::move(release_claims)) {}

  // A block for it, which `user`, the stream that will write it first, waits for. `placement`
  // says where; if it cannot lie there it lies elsewhere, and the cursor knows.
  NewBlock allocate(Storage& storage, StreamId user, PlacementCursor& placement);
  NewBlock allocate(Storage& storage, StreamId user) {
    PlacementCursor anywhere;
    return allocate(storage, user, anywhere);
  }

  // A plan is followed from now on, in `size` bytes from `base` on: blocks whose placement says
  // where are placed there without looking. What nobody uses is freed at once, as where all is
  // known to fit.
  // False, and none is: a part of that range is in use. REQUIRES: what is placed is unused by
  // then.
  bool open_plan(Offset base, Bytes size);
  // Blocks stay where they are. No-op without a plan. Also done by an allocation that no plan
  // foresaw, if room has to be made for it.
  void close_plan();
  bool plan_is_open() const { return context_.arena.plan_is_open(); }

  // Slides all together at the arena's lower end, in the order in which it lies. Where that
  // ends.
  Offset compact_all();
  // To that place; false, and it stays, if another block lies there, it is not in the arena, it
  // would have to go up onto a part of where it lies, or an open plan has its bytes.
  bool move(Storage& storage, Offset to);
  // Brings a copy back from its tier, at `at` or, without it, into a hole that is slid together
  // if need be. False if it cannot be.
  bool copy_in(Storage& storage, std::optional<Offset> at);

  // Where a storage is to be: at that offset, or (none) on a tier.
  struct Target {
    Storage* storage = nullptr;
    std::optional<Offset> at;
  };
  // Moves, sends away and brings back until all are there. False if that cannot be done; then
  // some are. Only between operators. REQUIRES: the places do not overlap.
  bool relocate(const std::vector<Target>& targets);

 private:
  struct Compaction;

  std::optional<Allocation> allocate_compact(const Storage& storage);
  std::optional<Allocation> make_space(Bytes size, Category category);
  bool release_best(Bytes size);
  bool release_window(Bytes size);
  void release_austerely(Bytes size);
  std::optional<Compaction> cheapest_compaction(Bytes size) const;
  bool compact_for(Bytes size, bool at_any_cost);
  void slide(Storage& storage, Offset to);
  bool move_block(Storage& storage, Offset to);
  std::optional<Offset> top_of_highest_hole(Bytes size) const;
  [[noreturn]] void throw_out_of_memory(const Storage& storage);

  ResidencyContext& context_;
  StateChanges& changes_;
  Transfers& transfers_;
  const std::function<bool()> release_claims_;
  Fence plan_waited_;                 // what compute has waited for in the open plan
  mutable std::vector<Block> holes_;  // scratch
};

}  // namespace tidemark
