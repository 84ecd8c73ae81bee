// The mechanism: pin, evict, offload, reload, recompute. It owns the state of every storage and
// runs every operator; what to release and when to prefetch it asks its ReleasePolicy.
//
// An operator's life (execute): pin inputs, bring back those that are away, make room for
// outputs and workspace, launch, unpin. The issuing thread never waits for the device, except
// when it reads values. Every decision comes from the order of calls and the issue clock, never
// from what has completed.
//
// Making room, in this order, until the allocation fits:
//   1. slide blocks together, where there is room enough but in pieces and moving is cheaper
//      than releasing;
//   2. release what the policy chooses;
//   3. the austere schedule: release everything that is not pinned, in a fixed order and by
//      fixed rules, slide the rest together, try once more;
//   4. OutOfMemory, which says why. Nothing has changed for the caller: the operator did not
//      run.
//
// Threads: the session's issuing thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/cost/cost_model.h"
#include "runtime/device/device.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/tier.h"
#include "runtime/residency/placement.h"
#include "runtime/residency/policy.h"
#include "runtime/residency/storage_event.h"
#include "runtime/telemetry/event_log.h"
#include "runtime/telemetry/step_stats.h"
#include "runtime/tensor/recipe.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

struct ResidencyOptions {
  // Off: storages are counted and freed, never released; an operator that does not fit is an
  // error.
  bool managed = true;
  // The program is known to fit (a dry run said so): inputs that only recipes could still want
  // are dropped, so that memory is used exactly as without management.
  bool known_to_fit = false;
  bool evict = true;
  // Off: operators and copies are priced by the profile alone, so that decisions are those of
  // the simulator, step for step.
  bool learn_costs = true;
  // Off: each copy is waited for by compute before anything else runs.
  bool overlap = true;
  // Slide blocks together instead of releasing, where that is cheaper.
  bool slide = true;
  // Count the host's time in StepStats::memory_time; takes some itself.
  bool time_memory = false;
  // Overwrite freed blocks with a pattern (debugging; devices with data).
  bool poison = false;
};

// The origin of what came from host memory.
inline constexpr const char* kOriginUpload = "upload";

// Of a training step; where the program is tells what it will want next.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };

// Values on their way from or to host memory, a piece at a time and in order. Pieces begin at
// multiples of kHostPiece; all but the last have that size. A source's are aligned for any
// number. Neither may use the session; what either throws ends the transfer.
inline constexpr Bytes kHostPiece{2 << 20};
using PieceSource = std::function<void(Bytes offset, std::span<std::byte> piece)>;
using PieceSink = std::function<void(std::span<const std::byte> piece)>;
// Copies the pieces to `to`, one behind the other.
PieceSink copy_into(void* to);

class Residency final : public StorageOwner {
 public:
  Residency(Device& device, Arena& arena, std::vector<Tier*> tiers, CostModel& costs,
            EventLog& log, ReleasePolicy& policy, const ResidencyOptions& options);
  // Storages that outlive it become kLost.
  ~Residency() override;

  // An empty storage: its bytes come with the operator or the upload that writes it.
  IntrusivePtr<Storage> create(Bytes bytes, Category category, const char* origin);

  // Runs a call. Outputs must be kEmpty. Keeps `call` as the outputs' recipe if it can be run
  // again. Throws OutOfMemory, DeviceError; then outputs are still kEmpty and inputs are as
  // they were. False if a block does not lie where the placement says.
  bool execute(const IntrusivePtr<Recipe>& call, const BlockPlacement& placement = {});

  // A call that has been issued but is to be run later: its inputs are held, and for the
  // program what it writes in place counts as written from now on; what others have computed
  // from the bytes that are there until then can still be computed again. Then
  // execute_deferred() runs it; if that throws it may be tried again. Or give_up() says that it
  // never will be: its outputs are lost, what it would have written in place stays as it is,
  // version included.
  void defer(Recipe& call);
  bool execute_deferred(const IntrusivePtr<Recipe>& call, const BlockPlacement& placement = {});
  void give_up(Recipe& call);
  // Until let_go() the storage can be had, as if it had a user. It may be released.
  void hold(Storage& storage);
  void let_go(Storage& storage);
  // Will somebody want its bytes: a user, or a call that was put off?
  static bool needed(const Storage& storage) {
    return storage.users_ > 0 || storage.put_off_ > 0;
  }

  // --- for plans ---
  // A plan is followed from now on, in `size` bytes from `base` on: blocks whose placement says
  // where are placed there without looking. What nobody uses is freed at once, as where all is
  // known to fit.
  // REQUIRES: that range is unused; what is placed is unused by then.
  void open_plan(Offset base, Bytes size);
  // Blocks stay where they are. No-op without a plan. Also done by an allocation that no plan
  // foresaw, if room has to be made for it.
  void close_plan();
  bool plan_is_open() const { return planned_; }
  // Brings everything back and slides it together at the arena's lower end, in the order in
  // which it lies. Where that ends. Only between operators.
  Offset pack();
  // Of all that has users, wherever it is, as it occupies the arena.
  Bytes bytes_in_use() const;

  // The program calls an operator: this tells listeners. Then comes execute(), or defer().
  void begin_call(const Recipe& call) const {
    tell({.kind = StorageEvent::Kind::kCall, .call = &call});
  }
  // Told of every event from now on, in order; it outlives that.
  void listen(StorageListener& listener) { listeners_.push_back(&listener); }
  // Not any more, if it was.
  void ignore(StorageListener& listener) { std::erase(listeners_, &listener); }

  // --- for schedules ---
  // All that has users.
  std::vector<IntrusivePtr<Storage>> in_use() const;
  std::optional<Offset> offset_of(const Storage& storage) const {
    return storage.resident() ? std::optional(storage.block_.offset) : std::nullopt;
  }
  // Where a storage is to be: at that offset, or (none) on a tier.
  struct Target {
    Storage* storage = nullptr;
    std::optional<Offset> at;
  };
  // Moves, sends away and brings back until all are there. False if that cannot be done; then
  // some are. Only between operators. REQUIRES: the places do not overlap.
  bool arrange(const std::vector<Target>& targets);
  // Releases one that way; offloading is free where a copy is on a tier. False if that cannot
  // be done.
  bool release_by(Storage& storage, Action action, Reason reason);
  // Runs the call that made it again, for it and for whatever else the call made that is away
  // and has users or claims. False, and nothing has happened, if it has no recipe or an input
  // is not resident; false too if a block does not lie where the placement says.
  bool recompute(Storage& storage, const BlockPlacement& placement);
  // Brings a copy back from its tier, at `at` or, without it, into a hole that is slid together
  // if need be. False if it cannot be.
  bool copy_in(Storage& storage, std::optional<Offset> at);
  // Until unclaim() the storage is not evicted, nor freed for want of users.
  void claim(Storage& storage) { ++storage.wanted_; }
  void unclaim(Storage& storage);
  // To that place; false, and it stays, if another block lies there, it is not in the arena, or
  // it would have to go up onto a part of where it lies.
  bool move(Storage& storage, Offset to);
  // Of one that is on a tier: it is to be recomputed instead. False if it cannot be.
  bool give_up_copy(Storage& storage);
  // What was evicted and has users is brought back, and what has users needs no recipe from now
  // on. A step's end does that too.
  void bring_back_survivors();

  // Fills an empty storage from host memory that `keep_alive` holds until the copy is done.
  // `from` may be null on devices without data.
  // False if its block does not lie where the placement says.
  bool upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive,
              const BlockPlacement& placement = {});
  // The same from `source`, which is not called on devices without data. Host memory holds a
  // few pieces at a time. If anything throws, the storage stays empty.
  void upload(Storage& storage, const PieceSource& source);
  // Waits for the bytes [offset, offset + bytes) and gives them to `sink`. False, and `sink` is
  // not called, on devices without data.
  bool download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink);

  // A step's end: everything that is alive keeps its bytes without need of a recipe from now on
  // (evicted storages are brought back first). Measured costs are taken over.
  void begin_step();
  // `synchronize`: waits for the device first, so that the figures are whole.
  StepStats end_step(bool synchronize);
  // A step that threw: clears what was under way. What is evicted keeps its recipe.
  void abort_step();

  // For simulations: Stopped is thrown as soon as another block is wanted, another call is
  // issued or the step ends, whatever comes first.
  struct Stopped {};
  void stop() { stopped_ = true; }

  // Off: what is measured is not learnt from, as something else keeps the processors busy.
  void set_learning(bool learning) { learning_ = learning; }

  void set_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  const StepStats& stats() const { return stats_; }

  // --- for policies ---
  bool may_release(const Storage& storage) const {
    ++examined_;
    return storage.resident() && storage.pins_ == 0 && storage.wanted_ == 0;
  }
  // Can it be recomputed, now?
  bool may_evict(Storage& storage) const { return can_evict(storage); }
  // Releases one storage the way the director wants. False if it cannot be released at all now.
  bool release(Storage& storage, Reason reason);
  // Copies one out that stays where it is: releasing it later is free. False if no tier has
  // room, or it has a copy already, or may not be offloaded.
  bool copy_out(Storage& storage, Reason reason);
  // Resident, with a valid copy on a tier?
  bool has_copy(const Storage& storage) const { return storage.resident() && storage.tier_; }
  // Brings an offloaded storage back if the arena has room as it is (at `at`, if given); true
  // if it did.
  bool prefetch(Storage& storage, std::optional<Offset> at = std::nullopt);
  Nanos clock() const { return clock_; }
  const Arena& arena() const { return arena_; }
  const CostModel& costs() const { return costs_; }
  // How much has been looked at since it began to decide what to release and what to recompute:
  // storages, blocks and inputs of recipes. Where that is many to an operator, the host's time
  // grows with it. The same on every machine.
  int64_t examined() const { return examined_; }
  // By a planner, beside what is counted here.
  void count_examined(int64_t more) const { examined_ += more; }
  // c_r: time to recompute it with its ancestors that are not resident, offloaded ones at their
  // reload cost. None if that is impossible. Stops counting once above `enough`.
  std::optional<Nanos> recompute_cost(Storage& storage, Nanos enough) const;
  // c_s for one direction, as the tier that it is on (or would go to) is expected to take.
  Nanos reload_cost(const Storage& storage) const;
  // The limit of the nearest tier; 0 without one.
  Bytes tier_room() const { return tiers_.empty() ? Bytes(0) : tiers_.front()->limit(); }
  // How many storages were prefetched and have not been used yet.
  int prefetched() const { return prefetched_; }

  // What it keeps, counted: for tests and long runs.
  struct Kept {
    int64_t storages = 0;
    int64_t recipes = 0;       // storages that have one
    int64_t host_buffers = 0;  // copies from and to host memory that may be under way
  };
  Kept kept() const;

  // Where and how much: one line per category and the largest storages; for error messages.
  // `asked`: what found no room.
  std::string describe_memory(Bytes asked);

  // StorageOwner
  void on_unused(Storage& storage) override;
  void on_unreferenced(Storage& storage) override;

 private:
  // What an operator being issued holds on to; lets go of it when it ends, however it ends.
  class Issue;
  // What a call being issued writes in place.
  class WritingScope;
  // A recomputation's claims on the inputs that it has yet to read.
  class Claims;
  // One under way: what it has yet to read.
  class Recomputation;
  // Given back to the arena unless it is kept.
  class NewBlock;
  // Counts the host's time from here to its end as spent on memory.
  class MemoryTimer;
  // Work whose time is not known yet.
  struct Measured {
    CostKey key = 0;
    Bytes copied{0};
    bool recomputed = false;
  };

  // room.cc: finding space in the arena.
  NewBlock allocate(Storage& storage, StreamId user, PlacementCursor& placement);
  std::optional<Allocation> allocate_compact(const Storage& storage);
  std::optional<Allocation> make_room(Bytes size, Category category);
  bool release_best(Bytes size);
  void release_austerely(Bytes size);
  void release_austerely(Storage& storage);
  struct Slide;
  std::vector<Storage*> placed() const;
  std::vector<Storage*>::const_iterator first_from(Offset offset) const;
  void put_in_place(Storage& storage);
  void take_from_place(Storage& storage);
  std::optional<Slide> cheapest_slide(Bytes size) const;
  bool slide_for(Bytes size, bool at_any_cost);
  bool release_window(Bytes size);
  void slide(Storage& storage, Offset to);
  bool move_block(Storage& storage, Offset to);
  std::optional<Offset> top_of_highest_hole(Bytes size) const;
  [[noreturn]] void throw_out_of_memory(const Storage& storage);

  // residency.cc: running calls.
  enum class Run : uint8_t { kFirst, kDeferred, kAgain };
  bool run(const IntrusivePtr<Recipe>& call, Run kind, const BlockPlacement& placement);
  bool issue(Recipe& call, Run kind, Reason reason, const BlockPlacement& placement = {});
  void fetch(Storage& storage, Reason reason);

  // materialise.cc: bringing back what was evicted.
  void materialise(Storage& root, Reason reason);
  bool recompute_at_once(Recomputation& recomputation, Storage& root, Reason reason);
  bool give_up_claims();
  void materialise_inputs(Recipe& call);
  std::vector<IntrusivePtr<Recipe>> plan_recomputation(Storage& root);
  bool runnable(const Storage& storage) const;
  template <class IsTarget, class Known>
  bool reads(const Storage& from, const IsTarget& is_target, const Known& known) const;
  bool reaches(const Storage& from, const Storage& target) const;
  void protect_readers_of(Storage& storage);
  bool evicted_reach(const Storage& target) const;
  bool depends_on_written(const Storage& storage) const;
  bool find_dependence(const Storage& storage) const;
  static bool available(const Storage& storage) {
    return storage.residence_ == Residence::kResident ||
           storage.residence_ == Residence::kOffloaded;
  }

  // It is here, and not only for a recomputation under way.
  static bool stays_available(const Storage& storage) {
    return available(storage) && (needed(storage) || !storage.recipe_);
  }

  // transfer.cc: sending away and bringing back copies.
  bool can_offload(const Storage& storage) const;
  bool can_evict(Storage& storage) const;
  void evict(Storage& storage, Reason reason);
  bool offload(Storage& storage, Reason reason);
  bool store(Storage& storage, EventKind kind, Reason reason);
  void drop_clean(Storage& storage, Reason reason);
  void reload(Storage& storage, NewBlock block, EventKind kind, Reason reason);
  std::optional<TierSpace> reserve_on_tier(Bytes size, Tier*& tier);
  void give_up_copies_for(Bytes size);
  void give_up_copy(Storage& storage, Reason reason);
  void drop_tier_copy(Storage& storage);

  // lifetime.cc: from creation to burial.
  void become_resident(Storage& storage, NewBlock& block, Event written,
                       StorageEvent::Kind how);
  void offer_to_policy(Storage& storage);
  void leave_arena(Storage& storage, Residence next);
  void settle_unused(Storage& storage);
  void settle_not_needed(Storage& storage);
  void set_recipe(Storage& storage, IntrusivePtr<Recipe> recipe);
  void drop_recipe(Storage& storage);
  void bury(Storage& storage);
  void settle_host_buffers(bool wait);
  // Waits until copies under way read no more than so much.
  void bound_host_buffers(Bytes most);
  void stop_here() const {
    if (stopped_) throw Stopped();
  }
  void tell(StorageEvent::Kind kind, Storage* storage = nullptr,
            Reason reason = Reason::kNone) const {
    tell({.kind = kind, .storage = storage, .reason = reason});
  }
  void tell(const StorageEvent& event) const {
    for (StorageListener* listener : listeners_) listener->on_event(event);
  }
  uint64_t log(EventKind kind, Reason reason, const Storage& storage, StreamId stream,
               Nanos expected);
  void measure(uint64_t tag, const Measured& work);
  void take_completions();
  // What has not been timed by now never will be, but for the latest so many.
  void stop_measuring(size_t but = 0);
  template <class Visit>
  void for_each_storage(Visit visit);

  // Host memory that a copy under way reads or writes.
  struct HostBuffer {
    Event done;
    std::shared_ptr<const void> keep_alive;
    Bytes bytes{0};
  };

  Device& device_;
  Arena& arena_;
  std::vector<Tier*> tiers_;  // nearest first
  CostModel& costs_;
  EventLog& log_;
  ReleasePolicy& policy_;
  const ResidencyOptions options_;

  Nanos clock_{0};
  Phase phase_ = Phase::kForward;
  StepStats stats_;
  Nanos step_began_{0};
  Nanos modelled_began_{0};
  Nanos stalled_before_{0};
  Storage* storages_ = nullptr;   // all alive, newest first
  std::vector<Storage*> placed_;  // those that are resident, by offset
  int64_t clean_copies_ = 0;      // of them, how many have a copy on a tier
  uint32_t next_id_ = 1;
  uint32_t slots_ = 0;                // handed out so far
  std::vector<uint32_t> free_slots_;  // of storages that are gone
  int prefetched_ = 0;
  int64_t evicted_users_ = 0;  // storages that are evicted and needed
  mutable uint64_t walk_ = 0;  // mark of the current graph walk
  uint64_t epoch_ = 1;         // grows when a recipe may have stopped being runnable
  uint64_t change_ = 1;        // grows when what recomputing something reads may have changed
  mutable int64_t examined_ = 0;
  // Being written in place by the call that is being issued: nothing that would be recomputed
  // from their present contents may be evicted until it is launched.
  std::vector<Storage*> writing_;
  std::vector<Recomputation*> recomputations_;  // under way, each for the one before it
  // By a schedule, since the last call of the program.
  std::vector<IntrusivePtr<Storage>> recomputed_;
  std::vector<Storage*> graveyard_;
  bool planned_ = false;
  Fence plan_waited_;  // what compute has waited for in the open plan
  int timing_ = 0;     // MemoryTimers alive
  std::vector<StorageListener*> listeners_;
  bool stopped_ = false;
  bool burying_ = false;
  std::vector<HostBuffer> host_buffers_;
  std::deque<Measured> measured_;  // tags are consecutive from first_measured_
  uint64_t first_measured_ = 1;
  bool learning_ = true;
};

}  // namespace tidemark
