// Makes a session run by schedules: records steps, plans repeated steps in the background, and
// follows a schedule from the next step that it matches.
//
//   step 1   recorded  ----.
//   step 2   recorded  ----+ the same program: producers work in the background
//   step 3   by the policy |
//   step 4  <--------------' by the schedule, as long as it is the quickest
//   step 5   a call differs: the policy takes over; step 6 is recorded
//
// Producers, in this order; the first two are the phases of planner/pipeline/pipeline.h:
//   order     if it fits in the budget; not for steps that carry storages over their end
//   releases  the first ones, then the long search
//   recorded  the policy's own actions in a step, with fixed offsets; replaces the search
// The latter two are on trial at first: a schedule is dropped if steps take longer than under
// the policy (by 0.5 %, or by 2 % for a recorded schedule). Steps soon follow the first
// releases, whose copies show the speed of the link to the long search.
//
// One schedule is kept per program, for up to sixteen programs. The smaller last batch of an
// epoch has its own, as steps by a schedule do not count between two recorded ones. A step's
// first operator, upload or read selects the schedule to follow.
//
// Threads: the session's issuing thread; producers run on a thread of their own.
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
#include "runtime/planner/pipeline/pipeline.h"
#include "runtime/planner/planner.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/step_recorder.h"
#include "runtime/residency/storage_event.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/telemetry/step_stats.h"

namespace tidemark {

struct PlanOptions {
  // For the order and the layout. Bounded by counted work, so that a schedule does not depend
  // on the machine's load.
  planner::PlannerOptions planner{.limits = {.seconds = 1e9, .nodes = planner::kOrderNodes}};
  // Off: keeps the program's order and releases, even where another order needs fewer or none.
  bool order = true;
  // Searches for releases. Off: takes over the policy's releases.
  bool search = false;
  // The maximum work of a search, in simulated calls; longer steps justify more. 0: the only
  // limit is planner::kThorough.
  int64_t effort = 0;
  // Computes lower bounds for the time of a schedule that releases (Schedule::time_bound),
  // whoever made it, which takes seconds to minutes: in the background after the searches, else
  // in compute_bounds(), as steps do not wait for bounds.
  bool time_bound = false;
  // Off: a step that releases nothing under the policy is not planned.
  bool where_it_fits = true;
  // Steps are recorded, but not planned.
  bool record_only = false;
  // Off: the session waits for the schedule at the end of the step, for runs that must be
  // reproducible, such as simulations.
  bool background = true;
  // The maximum duration of a step by a schedule that releases, relative to the policy's step.
  // None: 1.005 for a search, 1.02 for the policy's own releases.
  std::optional<double> max_slowdown{};
  // Replaces all producers and runs in their thread: for saved schedules and tests. If it
  // returns none, throws, or returns a schedule in which schedule_violations() finds a fault,
  // the step is not planned, and the report says why. `foreign`: see plan_releases().
  std::function<std::optional<Schedule>(const StepTrace& trace, const PlanLimits& limits,
                                        const std::vector<Bytes>& foreign)>
      producer{};
  // Told, on the thread that plans, how much a schedule will keep on tiers before it is
  // followed; ends soon after `stop`. Null: the session's host tier takes its memory then.
  std::function<void(Bytes, const std::atomic<bool>& stop)> before_use{};
  // Runs `work` on a new thread; may throw std::system_error. Null: uses std::thread.
  std::function<std::thread(std::function<void()> work)> thread{};
  // Called with one line per event: a step planned, a schedule not used and why, a mismatch.
  // Null: the log.
  std::function<void(std::string_view)> report{};
};

struct PlanCounts {
  int64_t planned_steps = 0;  // followed a schedule to the end
  int64_t mismatches = 0;
  int64_t plans = 0;
};

class StepPlanner final : public StorageListener {
 public:
  // REQUIRES: `residency` and `costs` outlive the planner.
  StepPlanner(Residency& residency, CostModel& costs, PlanOptions options);
  ~StepPlanner() override;
  StepPlanner(const StepPlanner&) = delete;
  StepPlanner& operator=(const StepPlanner&) = delete;

  // A step and the program's requests in it; requests outside of steps are not passed here.
  void begin_step();
  // Runs the call, now or by the end of the step. Its outputs are kEmpty until then.
  void call(const IntrusivePtr<Recipe>& call);
  void upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive);
  // On return everything issued so far has been handed to the device.
  void before_read(Storage& storage);
  // On return the whole step has been handed to the device.
  void end_step();
  // The step is over; `stats` are its figures.
  void after_step(const StepStats& stats);
  // The step threw: runs deferred calls, if possible.
  void abort_step();
  void on_event(const StorageEvent& event) noexcept override;

  // Time on the issuing thread in the last after_step(); 0 if producers run in the background.
  Nanos planning_time() const { return planning_time_; }
  // Whether a producer is running.
  bool planning() const { return producing_.valid(); }
  // Waits for the producer.
  void finish_planning();
  // Computes the bounds of current() (PlanOptions::time_bound), which takes seconds to minutes.
  // Does nothing in the background, where they are computed beside the steps.
  void compute_bounds();
  // Called before the issuing thread waits for a producer; may not use the session.
  void on_planning(std::function<void()> callback) { on_planning_ = std::move(callback); }
  // Whether the last step followed a schedule from beginning to end.
  bool planned() const { return planned_; }
  const PlanCounts& counts() const { return counts_; }
  // REQUIRES: a step has been recorded and not been taken.
  StepTrace take_recorded() { return std::move(*latest_); }
  // Whether steps like the last will run as it did.
  bool settled() const { return last_ && last_->settled && !planning(); }
  // The schedule last followed or made; null if there is none, or the policy has since proved
  // better.
  const BoundSchedule* current() const { return current_.get(); }

 private:
  enum class Mode : uint8_t { kIdle, kChoose, kRecord, kFollow };
  enum class Producer : uint8_t { kOrder, kReleases, kRecorded, kGiven };
  struct Produced {
    std::optional<Schedule> schedule{};
    std::optional<planner::TimeBounds> bounds{};           // of the schedule followed
    std::vector<std::vector<uint32_t>> worth_searching{};  // orders
    StepTrace trace{};                                     // with the costs it was made for
    std::string why_not{};
    int64_t work = 0;        // in simulated calls
    double seconds = 0;      // spent making it
    Nanos time{0};           // of a step by it, as expected
    uint64_t made_from = 0;  // fingerprint() of the step and the limits
  };
  // All inputs of a producer, except earlier results.
  struct Request {
    StepTrace trace;
    PlanLimits limits;
    PlanLimits fastest;  // the same with the link's highest rates, for bounds
    std::vector<Bytes> foreign;
    int64_t work = 0;
  };
  using Produce = std::function<Produced(const Request&)>;
  // Steps with the same trace, and the results for them.
  struct Program {
    StepTrace trace;
    uint64_t signature = 0;
    int seen = 0;                             // recorded steps
    InitialStorages initial;                  // of the last recorded step
    Producer producer = Producer::kOrder;     // made `schedule`, or runs next
    std::shared_ptr<BoundSchedule> schedule;  // to follow; null: the policy decides
    bool settled = false;                     // nothing more is tried
    bool bounded = false;                     // bounds of the time were asked for
    Nanos policy_time{0};                     // mean of the last steps under the policy
    // The trial: searches made, steps by this schedule and the shortest of them, the best
    // schedule so far and its time.
    int searches = 0;
    int steps = 0;
    Nanos least{0};
    std::shared_ptr<BoundSchedule> best;
    Nanos best_time{0};
    std::vector<uint32_t> order;                         // for the least peak; empty: unknown
    std::vector<std::vector<uint32_t>> worth_searching;  // orders that a long search tries
    int failures = 0;  // in a row, where memory differed from the schedule
  };

  void say(const std::string& what) const;
  template <class BeginsWith>
  void choose(const BeginsWith& begins_with);
  void before_recording();
  Program& program_of(const StepTrace& trace);
  void recorded(const StepStats& stats);
  void followed(const StepStats& stats);
  // Starts the program's next producer.
  void produce(Program& program);
  void produce_order(Program& program);
  void produce_releases(Program& program);
  void produce_recorded(Program& program);
  void produce_as_given(Program& program);
  void produce_bounds(Program& program);
  static void check(Produced& produced, const StepTrace& trace, const PlanLimits& limits,
                    Producer producer);
  static bool is_compared(const Schedule& schedule, Producer producer);
  static void state_times(Produced& produced, const Request& step, Producer producer);
  PlanLimits limits_of(const Program& program) const;
  // `work`: the maximum work.
  void start(Program& program, int64_t work, Produce produce);
  void take_produced();
  void adopt(Program& program, Produced produced);
  void judge(Program& program, Nanos took);
  void settle(Program& program);
  void give_up(Program& program, const std::string& why);
  PlanLimits limits() const;
  PlanLimits fastest_limits() const;
  // The producer for steps that fit in no order.
  Producer without_order() const {
    return options_.search ? Producer::kReleases : Producer::kRecorded;
  }
  Bytes capacity() const { return residency_.arena().offsets().capacity(); }

  Residency& residency_;
  CostModel& costs_;
  const PlanOptions options_;
  Mode mode_ = Mode::kIdle;
  StepRecorder recorder_;
  ScheduleRecorder memory_;          // records steps whose releases may be taken over
  std::optional<StepTrace> latest_;  // recorded in this step
  InitialStorages latest_initial_;
  std::optional<Schedule> latest_memory_;
  std::unordered_set<uint64_t> refused_;
  std::vector<std::unique_ptr<Program>> programs_;  // latest first
  Program* followed_ = nullptr;                     // in this step
  const Program* last_ = nullptr;                   // the last step's program; null: unknown
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
