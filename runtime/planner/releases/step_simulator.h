// The cost of a step with given releases, simulated call by call as compute runs it: time,
// copies on the link, recomputations with their own inputs, and shortfalls of space.
//
//   call        uploads that precede the call; inputs that are away come back: recomputed from
//               available storages, or copied in;
//               space for outputs and workspace, unless an output overwrites an input:
//               evictable storages are released, then compute waits for copies under way, then
//               unused prefetched storages are released again
//   after it    releases that begin here, and prefetches; storages that have ended are freed
//
// Each call is processed as Residency does it, so that the schedule written can be carried out
// exactly. Memory is counted in bytes; offsets are not modelled. Storages recomputed on the way
// to others stay as long as there is space.
//
// A step begins in the state in which the one before ended. Storages planned to be away over
// the end are copied out as the step begins, or after their last use: the step then begins
// without them, and ends when their copies are done. If space is too small for all persistent
// storages beside a call's working set, all leave after their last use.
//
// A storage made by an earlier step and freed in this one is treated until its first use like
// storages away over the end. A storage made in this step that survives it may be copied out
// after its last use: the step ends with it on a tier or still in the arena.
//
// A search runs plans that differ little from one that it has settled on. Moments of that one
// are saved, so that a run begins at the last of them before the plans part.
//
// Pure: no session, no tensors. Runs of one simulator share their scratch memory.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/planner/releases/release_draft.h"
#include "runtime/planner/releases/schedule_writer.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/link.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_table.h"
#include "runtime/schedule/step_trace.h"
#include "runtime/schedule/storage_state.h"

namespace tidemark::planner {

class StepSimulator {
 public:
  struct Outcome {
    bool possible = true;  // false: a storage cannot be recomputed
    Nanos time{0};         // compute time, with the fields below
    Nanos recomputed{0};
    Nanos waited{0};         // for copies
    Nanos copied{0};         // copies in both directions, without uploads, as if alone
    Bytes shortfall{0};      // sum of the increases of the shortfall over the step
    Bytes short_overall{0};  // summed over calls: the largest shortfall as each ran
    int64_t calls = 0;       // calls of the program simulated by this run
    // The search's objective: time, a high price for shortfalls, a low one for copies.
    double cost = 0;
  };

  // `trace`: with_kept_sources(); `step`: its table. REQUIRES: both outlive this object.
  StepSimulator(const StepTrace& trace, const StepTable& step, const PlanLimits& limits);

  // The price of a missing byte, in round trips of a byte over the link, charged for the
  // shortfall and for the average missing bytes. The shortfall alone would not suffice: if
  // space is short during the whole step, releasing a storage for a part of it leaves the
  // shortfall unchanged, and a search would keep everything.
  void set_shortfall_price(double times) { shortfall_price_ = times * link_price_; }
  // Whether prefetched storages are released again where space would be short. Initially true.
  void set_sends_back(bool sends_back) {
    if (sends_back != sends_back_) saved_ = 0;
    sends_back_ = sends_back;
  }
  // `releases`: in any order, at most one per gap. Stops once the cost is sure to exceed
  // `enough`.
  Outcome run(const std::vector<PlannedRelease>& releases,
              double enough = std::numeric_limits<double>::infinity());
  // The next runs will be of plans like that of the last run. Changes how long they take, and
  // Outcome::calls, but nothing else.
  void settle();
  // As run(), and writes the simulated actions as a schedule with `foreign` blocks.
  Outcome write(const std::vector<PlannedRelease>& releases, const std::vector<Bytes>& foreign,
                UnplacedSchedule& schedule);

 private:
  static constexpr uint32_t kNone = StepTable::kNone;
  using Do = Schedule::Do;
  // A claimed item may not be released.
  struct State : StorageState {
    bool evictable = false;  // may be released when space is short
    bool coming = false;     // its block is being filled, until `ready`
    bool ahead = false;      // brought back, and not used since
    bool fixed = false;      // cannot be recomputed any more
    uint32_t written = 0;    // in-place writes in this step: calls up to the last one
    uint32_t next = 0;       // the next call that needs it
    Nanos ready{0};          // when its last copy, out or in, is done
  };

  int64_t bytes(uint32_t item) const { return bytes_[item]; }
  bool ended(uint32_t item) const {
    return !step_.items[item].at_end && step_.items[item].end <= now_;
  }
  double bytes_short() const;
  void set_plan(const std::vector<PlannedRelease>& releases);
  void begin();
  void save();
  bool resume();
  std::pair<size_t, size_t> begun_before(uint32_t call) const;
  // Whether the item is not in memory when a step ends and the next one begins.
  bool away_between(const PlannedRelease& release) const {
    return release.wraps() && (all_away_between_ || release.leaves_before_end);
  }
  void send_away_between_steps();
  void wait_for_copies_between_steps();
  void upload(uint32_t op);
  uint32_t next_use(uint32_t item, uint32_t call) const;
  void run_call(uint32_t call);
  bool collect(uint32_t item);
  void compute_again(uint32_t item);
  void protect_readers_of(uint32_t written);
  bool reaches(uint32_t item, uint32_t target);
  bool missing(uint32_t output, bool again) const;
  uint32_t overwritten_by(uint32_t call, bool again) const;
  void issue(uint32_t call, bool again);
  void fetch(uint32_t item);
  void copy_in(uint32_t item);
  void wait_until(Nanos time);

  void take_space(int64_t need);
  uint32_t best_to_drop() const;
  bool send_back();
  void release_copied();
  void give_up(uint32_t item);
  void leave(uint32_t item, Residence next);
  void free(uint32_t item);
  void mark_evictable(uint32_t item);
  void release(const PlannedRelease& release);
  void copy_out(uint32_t item);
  bool make_space_for(uint32_t item);
  void bring_due();

  void run_ops_before(uint32_t call);
  void read(uint32_t op);
  void free_after(uint32_t op);
  void write_begin(const std::vector<Bytes>& foreign);
  void write_run(uint32_t call, bool again, uint32_t overwritten);
  void add(Do what, uint32_t item);
  void pin_copy(uint32_t item);

  const StepTrace& trace_;
  const StepTable& step_;
  const uint32_t calls_;
  const uint32_t between_moments_;
  const int64_t space_;
  const Link idle_;
  const double link_price_;  // nanoseconds per byte, both ways
  // All storages away over the step's end leave before it.
  const bool all_away_between_;
  double shortfall_price_;  // nanoseconds per missing byte
  bool sends_back_ = true;
  std::vector<int64_t> bytes_;                 // by item
  std::vector<Nanos> out_time_, in_time_;      // by item
  std::vector<State> before_step_;             // by item
  std::vector<uint32_t> existing_;             // items that exist before the step
  std::vector<std::vector<uint32_t>> writes_;  // by call: writes of bytes that others have read
  // By call: its inputs, then its outputs; for each, the next call that needs it.
  std::vector<std::vector<uint32_t>> next_uses_;

  std::vector<State> items_;
  std::vector<uint32_t> evictable_;  // includes some no longer evictable
  std::vector<uint32_t> evicted_;    // includes some no longer evicted, and some twice
  struct Leaving {
    uint32_t item = 0;
    Nanos ready{0};
    uint32_t block = 0;  // in the schedule written
  };
  std::vector<Leaving> leaving_;          // freed, with a copy under way
  std::vector<PlannedRelease> releases_;  // by `from`
  std::vector<uint32_t> reloads_;         // of releases_, by `reload_at`
  std::vector<uint32_t> due_;             // items to bring back as soon as space allows
  std::vector<uint32_t> ahead_;           // includes some no longer ahead
  std::vector<uint32_t> again_;           // calls
  std::vector<std::pair<uint32_t, size_t>> pending_;  // calls, and their next input
  std::vector<uint32_t> seen_;                        // by call: the last walk that saw it
  uint32_t walk_ = 0;
  uint32_t now_ = 0;  // the program's current call
  int64_t live_ = 0;
  int64_t short_by_ = 0;
  Link link_;
  Outcome outcome_;
  // All that changes while a step runs, apart from scratch memory and the schedule written.
  using Moment = std::tuple<std::vector<State>, std::vector<uint32_t>, std::vector<uint32_t>,
                            std::vector<Leaving>, std::vector<uint32_t>, std::vector<uint32_t>,
                            int64_t, int64_t, Link, Outcome>;
  auto state() {
    return std::tie(items_, evictable_, evicted_, leaving_, due_, ahead_, live_, short_by_,
                    link_, outcome_);
  }
  std::optional<std::vector<PlannedRelease>> settled_;
  std::vector<Moment> moments_;  // of the plan settled on; the first `saved_` are valid
  size_t saved_ = 0;
  uint32_t parts_after_ = 0;  // the call after which this plan differs from that one
  // The schedule being written.
  ScheduleWriter* writer_ = nullptr;
  std::vector<Bytes> foreign_;
  uint32_t foreign_block_ = 0;
};

}  // namespace tidemark::planner
