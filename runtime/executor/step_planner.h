// Lets a session run by schedules, by itself: records steps, has one that repeats planned in
// the background, and from the next step's beginning on follows what was planned.
//
//   step 1   recorded  ----.
//   step 2   recorded  ----+ the same program: producers work in the background
//   step 3   by the policy |
//   step 4  <--------------' by the schedule, as long as it is the quickest
//   step 5   a call differs: the policy takes over; step 6 is recorded
//
// Producers, in this order:
//   order     the order and the layout for the least peak, if that fits within the budget; not
//             for steps that carry storages over their end
//   releases  a search for what to evict, offload and bring back when, for the least time; in
//             the program's order, or in one of a lower peak where that is quicker
//   recorded  what the policy itself did in a step, with fixed places; in the place of a search
// The latter two are on trial: a schedule by which steps take longer than under the policy (by
// half a per cent, or two where it was recorded) is dropped. The search is made twice, as the
// first copies tell what the link can do.
//
// Schedules are kept, one for each program, up to sixteen: the smaller last batch of an epoch
// has its own, as steps by a schedule do not count between two that are recorded. Which one a
// step follows is decided by its first operator, upload or read.
//
// Threads: the session's issuing thread; producers run in one of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include "runtime/cost/cost_model.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/schedule_recorder.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/releases/releases_in_order.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/step_recorder.h"
#include "runtime/residency/storage_event.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/telemetry/step_stats.h"

namespace tidemark {

struct PlanOptions {
  // Of the order and the layout. Bounded by counted work, so that a schedule is the same on an
  // idle and on a busy machine.
  planner::PlannerOptions planner{.limits = {.seconds = 1e9, .nodes = 200'000}};
  // Off: the program's order, with releases, even where another order would need none or fewer.
  bool order = true;
  // Look for releases by a search. Off: take over the policy's.
  bool search = false;
  // The most work of a search, in simulated calls; long steps are worth more of it. 0: no limit
  // but planner::kThorough.
  int64_t effort = 0;
  // Off: a step that releases nothing under the policy stays as it is.
  bool where_it_fits = true;
  // Nothing is planned, only recorded.
  bool record_only = false;
  // Off: the session waits for the schedule at the end of the step; for what has to repeat, as
  // simulations.
  bool background = true;
  // How much longer than under the policy a step may take by a schedule that releases, in
  // proportion. None: 1.005 by a search, 1.02 by the policy's own releases.
  std::optional<double> max_slowdown{};
  // Makes the schedules, in the thread of the producers, and no other producer does: one that
  // was saved, or of a test. None, one that schedule_violations() finds something in, or an
  // exception: the step is not planned, and what is said tells why. `foreign` as in
  // plan_releases().
  std::function<std::optional<Schedule>(const StepTrace& trace, const PlanLimits& limits,
                                        const std::vector<Bytes>& foreign)>
      producer{};
  // Runs the work in a thread of its own, or throws std::system_error. Null: as std::thread.
  std::function<std::thread(std::function<void()> work)> thread{};
  // Called with one line per event: a step planned, a schedule not used and why, a mismatch.
  // Null: the log.
  std::function<void(std::string_view)> report{};
};

struct PlanCounts {
  int64_t planned_steps = 0;  // run by a schedule from beginning to end
  int64_t mismatches = 0;
  int64_t plans = 0;
};

class StepPlanner final : public StorageListener {
 public:
  // Both outlive it.
  StepPlanner(Residency& residency, CostModel& costs, PlanOptions options);
  ~StepPlanner() override;
  StepPlanner(const StepPlanner&) = delete;
  StepPlanner& operator=(const StepPlanner&) = delete;

  // A step and what the program does in it; what it does outside of steps is not told.
  void begin_step();
  // Runs it, now or by the end of the step. Outputs are kEmpty until then.
  void call(const IntrusivePtr<Recipe>& call);
  void upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive);
  // On return everything issued so far has been handed to the device.
  void before_read(Storage& storage);
  // On return the whole step has been handed to the device.
  void end_step();
  // The step is over, and this is what it took.
  void after_step(const StepStats& stats);
  // The step threw. What was put off is run, if it can be.
  void abort_step();
  void on_event(const StorageEvent& event) noexcept override;

  // The issuing thread's, in the last after_step(): 0 if producers work in the background.
  Nanos planning_time() const { return planning_time_; }
  // Does a producer work now?
  bool planning() const { return producing_.valid(); }
  // Waits for it.
  void finish_planning();
  // Called before the issuing thread waits for a producer; may not use the session.
  void on_planning(std::function<void()> callback) { on_planning_ = std::move(callback); }
  // Did the last step run by a schedule from beginning to end?
  bool planned() const { return planned_; }
  const PlanCounts& counts() const { return counts_; }
  // REQUIRES: a step has been recorded, and not been taken.
  StepTrace take_recorded() { return std::move(*latest_); }
  // Will steps like the last one run as it did?
  bool settled() const { return last_ && last_->settled && !planning(); }
  // The one that was followed or made last; null if there is none yet, or the policy has turned
  // out better since.
  const BoundSchedule* current() const { return current_.get(); }

 private:
  enum class Mode : uint8_t { kIdle, kChoose, kRecord, kFollow };
  enum class Producer : uint8_t { kOrder, kReleases, kRecorded, kGiven };
  struct Produced {
    std::optional<Schedule> schedule{};
    // Of a search: what the next one begins with. Its schedule has been taken out.
    std::optional<planner::OrderedReleases> releases{};
    std::string why_not{};
    int64_t work = 0;        // in simulated calls
    double seconds = 0;      // that it took
    uint64_t made_from = 0;  // fingerprint() of the step and the limits
  };
  // All that a schedule is made from, but what has been worked out before.
  struct Request {
    StepTrace trace;
    PlanLimits limits;
    std::vector<Bytes> foreign;
    int64_t work = 0;
  };
  using Produce = std::function<Produced(const Request&)>;
  // Steps that do the same, and what has been worked out for them.
  struct Program {
    StepTrace trace;
    uint64_t signature = 0;
    int seen = 0;                             // recorded steps
    InitialStorages initial;                  // of the last one
    Producer producer = Producer::kOrder;     // that made `schedule`, or is to work next
    std::shared_ptr<BoundSchedule> schedule;  // steps go by it; null: by the policy
    bool settled = false;                     // nothing more is tried
    Nanos policy_time{0};                     // of the last steps under the policy, on average
    // The trial: searches made; steps by this schedule, and the least that one took; the best
    // schedule so far, and what it took.
    int searches = 0;
    int steps = 0;
    Nanos least{0};
    std::shared_ptr<BoundSchedule> best;
    Nanos best_time{0};
    std::vector<uint32_t> order;  // for the least peak; empty: not known
    std::optional<planner::OrderedReleases> releases;
    int failures = 0;  // in a row: the memory was not as scheduled
  };

  void say(const std::string& what) const;
  template <class BeginsWith>
  void choose(const BeginsWith& begins_with);
  void before_recording();
  Program& program_of(const StepTrace& trace);
  void recorded(const StepStats& stats);
  void followed(const StepStats& stats);
  // Has the producer whose turn it is work for the program.
  void produce(Program& program);
  void produce_order(Program& program);
  void produce_releases(Program& program);
  void produce_recorded(Program& program);
  void produce_as_given(Program& program);
  static void check(Produced& produced, const StepTrace& trace, const PlanLimits& limits,
                    Producer producer);
  PlanLimits limits_of(const Program& program) const;
  // `work`: how much it may do.
  void start(Program& program, int64_t work, Produce produce);
  void take_produced();
  void adopt(Program& program, Produced produced);
  void judge(Program& program, Nanos took);
  void settle(Program& program);
  void give_up(Program& program, const std::string& why);
  PlanLimits limits() const;
  // Where a step does not fit in any order.
  Producer without_order() const {
    return options_.search ? Producer::kReleases : Producer::kRecorded;
  }
  Bytes capacity() const { return residency_.arena().offsets().capacity(); }

  Residency& residency_;
  CostModel& costs_;
  const PlanOptions options_;
  Mode mode_ = Mode::kIdle;
  StepRecorder recorder_;
  ScheduleRecorder memory_;          // of steps whose releases may be taken over
  std::optional<StepTrace> latest_;  // recorded in this step
  InitialStorages latest_initial_;
  std::optional<Schedule> latest_memory_;
  std::unordered_set<uint64_t> refused_;
  std::vector<std::unique_ptr<Program>> programs_;  // the latest first
  Program* followed_ = nullptr;                     // in this step
  const Program* last_ = nullptr;                   // of the last step; null: not known
  std::shared_ptr<const BoundSchedule> current_;
  std::unique_ptr<Executor> executor_;
  std::atomic<bool> stop_{false};  // producers
  std::future<Produced> producing_;
  std::thread producers_thread_;
  std::optional<uint64_t> producing_for_;
  int searches_ = 0;
  bool record_next_ = false;
  bool planned_ = false;
  Nanos planning_time_{0};
  std::function<void()> on_planning_;
  PlanCounts counts_;
};

}  // namespace tidemark
