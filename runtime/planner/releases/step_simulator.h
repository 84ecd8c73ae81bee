// What a step takes with given releases, gone through call by call as compute does, without
// running it: time, copies on the link, recomputation with all that it needs for itself, and
// where space is short.
//
//   call        what is uploaded before it comes; inputs that are away come back: computed
//               again from what is there, or copied in;
//               space for outputs and workspace: what may go goes, then compute waits for
//               copies under way, then what came back ahead of need goes again
//   after it    the releases that begin here, and copies that come back ahead of need;
//               what has ended is freed
//
// It goes through a call as Residency does, so that the schedule that it writes down can be
// carried out to the letter. Memory is counted in bytes; where blocks lie is not. What was
// computed again on the way to something else stays for as long as there is space.
//
// A step begins as the one before it ended. What is planned to be away over the end is copied
// out as the step begins; in so little space that not all that lives on can be there beside
// what a call needs, before the step ends, so that the step begins without it and ends when its
// copy is done.
//
// A storage that an earlier step has made, and that goes in this one, is until its first use
// like those that are away over the end. One that is made in this step, and stays, may be
// copied out after its last use: the step ends with it on a tier, or still in the arena.
//
// Pure: no session, no tensors. Runs of one simulator share their scratch memory.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/planner/releases/release_draft.h"
#include "runtime/planner/releases/schedule_writer.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_table.h"
#include "runtime/schedule/step_trace.h"
#include "runtime/schedule/storage_state.h"

namespace tidemark::planner {

class StepSimulator {
 public:
  struct Outcome {
    bool possible = true;  // false: something cannot be computed again
    Nanos time{0};         // of compute, with what follows
    Nanos recomputed{0};
    Nanos waited{0};         // for copies
    Nanos copied{0};         // how long the link was busy with copies, both ways; not uploads
    Bytes shortfall{0};      // space that was short, summed over the times that more was
    Bytes short_overall{0};  // summed over the calls: the most that was short as each ran
    int64_t calls = 0;       // of the program, gone through
    // What a search is to make small: time, much for what lacks, little for copies.
    double cost = 0;
  };

  // `trace`: with_kept_sources(); `step`: of it. REQUIRES: they outlive it.
  StepSimulator(const StepTrace& trace, const StepTable& step, const PlanLimits& limits);

  // The cost of a byte that is short, in round trips of a byte over the link: of the shortfall,
  // and of what is short on average. Where all of a step is short, to send something away for
  // a part of it makes no difference to the shortfall alone: space is as short again once it is
  // back. A search would keep everything.
  void set_shortfall_price(double times) { shortfall_price_ = times * link_price_; }
  // Whether what came back ahead of need goes again where space would be short; at first it
  // does.
  void set_sends_back(bool sends_back) { sends_back_ = sends_back; }
  // In any order; at most one for each gap. Stops once it is sure to cost more than `enough`.
  Outcome run(const std::vector<PlannedRelease>& releases,
              double enough = std::numeric_limits<double>::infinity());
  // The same, and what it does as a schedule, with `foreign` blocks of these sizes in it.
  Outcome write(const std::vector<PlannedRelease>& releases, const std::vector<Bytes>& foreign,
                UnplacedSchedule& schedule);

 private:
  static constexpr uint32_t kNone = StepTable::kNone;
  using Do = Schedule::Do;
  // A claimed item may not be released.
  struct State : StorageState {
    bool evictable = false;  // it may go when room is short
    bool coming = false;     // its block is being filled, until `ready`
    bool ahead = false;      // brought back, and not used since
    bool fixed = false;      // it cannot be computed again any more
    uint32_t written = 0;    // in place, in this step: calls up to the last that did
    uint32_t next = 0;       // the call that wants it next
    Nanos ready{0};          // the last copy of it, out or in, is done
  };

  int64_t bytes(uint32_t item) const { return step_.items[item].bytes.count(); }
  bool ended(uint32_t item) const {
    return !step_.items[item].at_end && step_.items[item].end <= now_;
  }
  double bytes_short() const;
  void begin(const std::vector<PlannedRelease>& releases);
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
  void issue(uint32_t call, bool again);
  void fetch(uint32_t item);
  void copy_in(uint32_t item);
  void wait_until(Nanos time);

  void take_space(int64_t need);
  uint32_t best_to_drop() const;
  bool send_back();
  void let_go_of_copied();
  void leave(uint32_t item, Residence next);
  void free(uint32_t item);
  void mark_evictable(uint32_t item);
  void release(const PlannedRelease& release);
  void copy_out(uint32_t item);
  void bring_due();

  void run_ops_before(uint32_t call);
  void read(uint32_t op);
  void free_after(uint32_t op);
  void write_begin(const std::vector<Bytes>& foreign);
  void write_run(uint32_t call, bool again);
  void add(Do what, uint32_t item);
  void unpin_done();
  void pin_copy(uint32_t item);

  const StepTrace& trace_;
  const StepTable& step_;
  const uint32_t calls_;
  const int64_t space_;
  const double link_price_;  // nanoseconds a byte, both ways
  // What is away over the step's end goes before it, not once the next one has begun.
  const bool away_between_;
  double shortfall_price_;  // nanoseconds a byte that is short
  bool sends_back_ = true;
  std::vector<Nanos> out_time_, in_time_;      // by item
  std::vector<std::vector<uint32_t>> writes_;  // by call: of what others have read
  // By call: the inputs, then the outputs; the call that wants each next.
  std::vector<std::vector<uint32_t>> next_uses_;

  std::vector<State> items_;
  std::vector<uint32_t> evictable_;  // and some that are not any more
  struct Leaving {
    uint32_t item = 0;
    Nanos ready{0};
    uint32_t block = 0;  // where it is written down
  };
  std::vector<Leaving> leaving_;          // freed, with a copy of them under way
  std::vector<PlannedRelease> releases_;  // by `from`
  std::vector<uint32_t> reloads_;         // of releases_, by `reload_at`
  std::vector<uint32_t> due_;             // items to bring back, as soon as there is room
  std::vector<uint32_t> ahead_;           // and some that are not any more
  std::vector<uint32_t> again_;           // calls
  std::vector<std::pair<uint32_t, size_t>> pending_;  // calls, and their next input
  std::vector<uint32_t> seen_;                        // by call: the walk that saw it last
  uint32_t walk_ = 0;
  uint32_t now_ = 0;  // the program's call
  int64_t live_ = 0;
  int64_t short_by_ = 0;
  Nanos link_out_{0}, link_in_{0};  // when they will be free
  Outcome outcome_;
  // Where a schedule is written down.
  ScheduleWriter* writer_ = nullptr;
  std::vector<std::pair<Nanos, uint32_t>> under_way_;  // until when; the copy's pin
  std::vector<Bytes> foreign_;
  uint32_t foreign_block_ = 0;
};

}  // namespace tidemark::planner
