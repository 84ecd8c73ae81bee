// Finds space in the arena.
//
// To make space, each step is tried in this order until the allocation fits:
//   1. release a run of neighbouring blocks, if the policy's prices make that cheaper than
//      compaction; or compact, if the free space suffices but is fragmented and moving is
//      cheaper than releasing;
//   2. release the policy's choice;
//   3. the last resort: release everything that is not held, in a fixed order and by fixed
//      rules; then compact the rest and try once more;
//   4. make recomputations under way give up their claims, and start again;
//   5. throw OutOfMemory, which gives the reason. Nothing has changed for the caller.
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
  // `release_claims`: step 4; returns false if no claims are left to give up.
  Space(ResidencyContext& context, StateChanges& changes, Transfers& transfers,
        std::function<bool()> release_claims)
      : context_(context),
        changes_(changes),
        transfers_(transfers),
        release_claims_(std::move(release_claims)) {}

  // Allocates a block for `storage`. `user`, the first stream to write the block, waits for
  // earlier work there. The block lies at the placement's offset if possible, else elsewhere,
  // which the cursor records.
  NewBlock allocate(Storage& storage, StreamId user, PlacementCursor& placement);
  NewBlock allocate(Storage& storage, StreamId user) {
    PlacementCursor anywhere;
    return allocate(storage, user, anywhere);
  }

  // Opens a plan: from now on, blocks with an offset inside [base, base + size) are placed
  // without a search, and unused storages are freed at once, as in a run known to fit. False,
  // and no plan is opened, if a part of the range is in use. REQUIRES: the space of each placed
  // block is unused by then.
  bool open_plan(Offset base, Bytes size);
  // Closes the plan; blocks stay where they are. No-op without a plan. An allocation outside
  // the plan also closes it, if space has to be made.
  void close_plan();
  bool plan_is_open() const { return context_.arena.plan_is_open(); }

  // Compacts all blocks to the arena's lower end, in address order. Returns the end of the last
  // block.
  Offset compact_all();
  // Moves a storage to `to`. False, and nothing moves, if it is not resident, if another block
  // is in the way, if an upward move would overlap its old block, or if an open plan has its
  // bytes.
  bool move(Storage& storage, Offset to);
  // Reloads a storage from its tier to `at`, or without `at` into a hole made by compaction.
  // False if impossible.
  bool copy_in(Storage& storage, std::optional<Offset> at);

  // Where a storage is to be: at an offset, or (none) on a tier.
  struct Target {
    Storage* storage = nullptr;
    std::optional<Offset> at;
  };
  // Moves, offloads and reloads storages until each is at its target. False if impossible; some
  // may then have moved. Call only between operators. REQUIRES: the targets do not overlap.
  bool relocate(const std::vector<Target>& targets);

 private:
  struct Compaction;

  std::optional<Allocation> allocate_compact(const Storage& storage);
  std::optional<Allocation> make_space(Bytes size, Category category);
  bool release_best(Bytes size);
  bool release_window(Bytes size);
  void release_as_last_resort(Bytes size);
  std::optional<Compaction> cheapest_compaction(Bytes size) const;
  bool compact_for(Bytes size, bool at_any_cost);
  void compact_block(Storage& storage, Offset to);
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
