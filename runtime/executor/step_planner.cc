#include "runtime/executor/step_planner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/core/processors.h"
#include "runtime/planner/bounds/time_bound.h"
#include "runtime/planner/recorded_schedule.h"
#include "runtime/planner/reordered_trace.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/fingerprint.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"

namespace tidemark {
namespace {

constexpr size_t kMaxPrograms = 16;
constexpr Bytes kUnlimited{int64_t{1} << 60};

// A schedule is dropped after this many steps whose memory did not follow it although the
// program ran as traced, with no planned step between them.
constexpr int kMaxFailures = 2;

// Successive searches for one program: a short one and a long one.
constexpr int kSearches = 2;

// Steps by which a schedule is judged; the fastest counts. The first step of a search's
// schedule does not count: it may have to bring persistent storages to their places.
constexpr int kTrialSteps = 2;
constexpr int kRecordedTrialSteps = 4;

// A search's first schedule may make a step this much slower than the policy does. A schedule
// leaves nothing to decide during the step, which saves time that is not modelled.
constexpr double kSearchSlowdown = 1.005;
constexpr double kRecordedSlowdown = 1.02;

// After this many searches, later ones are quick.
constexpr int kThoroughSearches = 4;
// A simulated call counts as this many storages examined by the residency manager.
constexpr int64_t kExaminedPerCall = 12;

std::string moving(const Schedule& schedule) {
  if (schedule.moved == Bytes(0)) return "";
  return " and moving " + format_bytes(schedule.moved) + " of blocks";
}

}  // namespace

StepPlanner::StepPlanner(Residency& residency, CostModel& costs, PlanOptions options)
    : residency_(residency),
      costs_(costs),
      options_(std::move(options)),
      memory_(residency, recorder_) {
  residency_.storage_events().listen(*this);
}

StepPlanner::~StepPlanner() {
  residency_.storage_events().ignore(*this);
  stop_ = true;
  if (producers_thread_.joinable()) producers_thread_.join();
  residency_.measurements().set_learning(true);
}

void StepPlanner::say(const std::string& what) const {
  if (options_.report) {
    options_.report(what);
  } else {
    log().info("plan: {}", what);
  }
}

// --- a step ---

void StepPlanner::begin_step() {
  take_produced();
  planned_ = false;
  followed_ = nullptr;
  const bool follows = std::any_of(programs_.begin(), programs_.end(),
                                   [](const auto& program) { return program->schedule; });
  const bool record = std::exchange(record_next_, false);
  mode_ = follows && !record ? Mode::kChoose : Mode::kRecord;
  recorder_.begin_step();
  latest_initial_ = {};
}

// `begins_with`: whether a step with that trace begins as this one does.
template <class BeginsWith>
void StepPlanner::choose(const BeginsWith& begins_with) {
  if (mode_ != Mode::kChoose) return;
  mode_ = Mode::kRecord;
  for (const auto& program : programs_) {
    if (!program->schedule || !begins_with(program->trace) ||
        !Executor::applies(*program->schedule, residency_)) {
      continue;
    }
    followed_ = program.get();
    current_ = program->schedule;
    executor_ = std::make_unique<Executor>(program->schedule, residency_);
    mode_ = Mode::kFollow;
    return;
  }
}

// Called before an operator is recorded. Before the first one, notes the storages in use.
void StepPlanner::before_recording() {
  if (!recorder_.trace().ops.empty() || options_.record_only) return;
  latest_initial_ = InitialStorages(residency_.storages().in_use());
  const bool may_be_taken_over =
      std::any_of(programs_.begin(), programs_.end(), [](const auto& program) {
        return program->producer == Producer::kRecorded && !program->schedule &&
               !program->settled;
      });
  if (may_be_taken_over) memory_.begin_step();
}

void StepPlanner::call(const IntrusivePtr<Recipe>& call) {
  choose([&](const StepTrace& trace) { return Executor::begins_with(trace, *call, costs_); });
  if (mode_ == Mode::kFollow) {
    executor_->call(call);
    return;
  }
  if (mode_ == Mode::kRecord) {
    before_recording();
    recorder_.call(*call, costs_);
  }
  residency_.execute(call);
}

void StepPlanner::upload(Storage& storage, const void* from,
                         std::shared_ptr<const void> keep_alive) {
  choose([&](const StepTrace& trace) {
    return Executor::begins_with(trace, StepTrace::Kind::kUpload, storage);
  });
  if (mode_ == Mode::kFollow) {
    executor_->upload(storage, from, std::move(keep_alive));
    return;
  }
  if (mode_ == Mode::kRecord) {
    before_recording();
    recorder_.upload(storage);
  }
  residency_.upload(storage, from, std::move(keep_alive));
}

void StepPlanner::before_read(Storage& storage) {
  choose([&](const StepTrace& trace) {
    return Executor::begins_with(trace, StepTrace::Kind::kRead, storage);
  });
  if (mode_ == Mode::kFollow) executor_->read(storage);
  if (mode_ != Mode::kRecord) return;
  before_recording();
  recorder_.read(storage);
  memory_.read(storage);
}

void StepPlanner::on_event(const StorageEvent& event) noexcept {
  if (event.kind == StorageEvent::Kind::kUnused) {
    if (mode_ == Mode::kRecord) recorder_.unused(*event.storage);
    if (mode_ == Mode::kFollow) executor_->unused(*event.storage);
  } else if (event.kind == StorageEvent::Kind::kGone) {
    recorder_.gone(*event.storage);
    if (mode_ == Mode::kFollow) executor_->gone(*event.storage);
  }
}

void StepPlanner::end_step() {
  if (mode_ == Mode::kFollow) {
    executor_->end_step();
  } else if (mode_ == Mode::kRecord) {
    if (memory_.recording()) residency_.rematerialiser().bring_back_survivors();
    latest_ = recorder_.end_step();
    if (memory_.recording()) latest_memory_ = memory_.end_step(latest_->storages.size());
  }
}

void StepPlanner::after_step(const StepStats& stats) {
  planning_time_ = Nanos(0);
  const Mode mode = std::exchange(mode_, Mode::kIdle);
  if (mode == Mode::kFollow) followed(stats);
  if (latest_ && !options_.record_only) recorded(stats);
  memory_.stop();
  executor_.reset();
  if (!options_.record_only) latest_.reset();
  latest_memory_.reset();
}

void StepPlanner::abort_step() {
  if (executor_) executor_->abandon();
  mode_ = Mode::kIdle;  // what goes with the executor is no news for it
  executor_.reset();
  memory_.stop();
  latest_.reset();
  latest_memory_.reset();
  planned_ = false;
}

// --- after a step ---

// Returns the program with this trace, which may be new.
StepPlanner::Program& StepPlanner::program_of(const StepTrace& trace) {
  const uint64_t signature = signature_of(trace);
  const auto found = std::find_if(programs_.begin(), programs_.end(), [&](const auto& program) {
    return program->signature == signature && same_program(program->trace, trace);
  });
  if (found != programs_.end()) return **found;
  if (programs_.size() == kMaxPrograms) {
    // Replaces the oldest program without a schedule, or else the oldest.
    auto oldest = std::find_if(programs_.rbegin(), programs_.rend(),
                               [](const auto& program) { return !program->schedule; });
    if (oldest == programs_.rend()) oldest = programs_.rbegin();
    if (last_ == oldest->get()) last_ = nullptr;
    if ((*oldest)->signature == producing_for_) producing_for_.reset();
    programs_.erase(std::next(oldest).base());
  }
  Program& program = **programs_.insert(programs_.begin(), std::make_unique<Program>());
  program.signature = signature;
  if (refused_.contains(signature)) program.settled = true;
  return program;
}

void StepPlanner::recorded(const StepStats& stats) {
  Program& program = program_of(*latest_);
  latest_initial_.number(*latest_, recorder_);
  program.initial = std::move(latest_initial_);
  program.trace = std::move(*latest_);  // with the latest costs
  // Under some policies the time of a step varies, so times are averaged. The first step does
  // not count: data and parameters are uploaded in it.
  const Nanos before = program.seen < 2 ? stats.modelled : program.policy_time;
  program.policy_time = Nanos((before + stats.modelled).count() / 2);
  if (program.schedule) program.schedule->initial = program.initial;
  if (program.best) program.best->initial = program.initial;
  last_ = &program;
  if (++program.seen < 2 || program.settled || program.schedule) return;
  const bool fits =
      stats.evictions + stats.offloads + stats.clean_drops + stats.reloads + stats.recomputes ==
      0;
  if (program.trace.ops.empty()) {
    give_up(program, why_not_plannable(program.trace));
  } else if (!program.initial.why_not().empty()) {
    give_up(program, program.initial.why_not());
  } else if (fits && !options_.where_it_fits) {
    program.settled = true;
  } else {
    produce(program);
  }
}

void StepPlanner::followed(const StepStats& stats) {
  Program& program = *followed_;
  last_ = followed_;
  if (executor_->mismatch().empty()) {
    planned_ = true;
    ++counts_.planned_steps;
    program.failures = 0;
    judge(program, stats.modelled);
    if (options_.background) produce_bounds(program);
    return;
  }
  ++counts_.mismatches;
  record_next_ = true;
  say("the step left its plan, and the policy took over: " + executor_->mismatch());
  if (executor_->memory_differed() && ++program.failures >= kMaxFailures) {
    const bool was_best = program.schedule == program.best;
    program.schedule.reset();
    current_.reset();
    program.best && !was_best
        ? settle(program)
        : give_up(program, "the memory that its plan relies on keeps changing");
  }
}

// --- producers ---

void StepPlanner::produce(Program& program) {
  if (producing_.valid()) return;
  if (options_.producer) program.producer = Producer::kGiven;
  const bool ordered = options_.order && why_not_plannable(program.trace).empty();
  if (program.producer == Producer::kOrder && !ordered) program.producer = without_order();
  switch (program.producer) {
    case Producer::kOrder: return produce_order(program);
    case Producer::kReleases: return produce_releases(program);
    case Producer::kRecorded: return produce_recorded(program);
    case Producer::kGiven: return produce_as_given(program);
  }
}

void StepPlanner::produce_order(Program& program) {
  start(program, options_.planner.limits.nodes, [this](const Request& step) {
    Produced produced;
    planner::PlannerOptions options = options_.planner;
    options.limits.stop = &stop_;
    options.space = step.limits.space;
    produced.schedule = planner::plan_order(step.trace, options, &produced.work);
    return produced;
  });
}

void StepPlanner::produce_releases(Program& program) {
  const int64_t thorough =
      options_.effort > 0 ? std::min(options_.effort, planner::kThorough) : planner::kThorough;
  const int64_t effort = std::min(thorough, searches_++ < kThoroughSearches
                                                ? planner::effort_for(program.policy_time)
                                                : planner::kQuick);
  ++program.searches;
  start(program, effort,
        [this, planned = program.order, orders = program.worth_searching](const Request& step) {
          Produced produced;
          produced.worth_searching = orders;
          if (orders.empty()) {
            auto first =
                planner::plan_first_releases(step.trace, step.limits, step.foreign, planned,
                                             options_.order, step.work, &produced.work, &stop_);
            if (first.best) produced.schedule = std::move(first.best->schedule);
            produced.worth_searching = std::move(first.worth_searching);
          }
          if (!produced.schedule) {
            produced.schedule =
                planner::plan_long(step.trace, step.limits, step.foreign,
                                   produced.worth_searching, step.work, &produced.work, &stop_);
          }
          if (!produced.schedule)
            produced.why_not = "the search found no releases that make it fit";
          return produced;
        });
}

void StepPlanner::produce_recorded(Program& program) {
  if (!latest_memory_) return;
  start(program, options_.planner.limits.nodes,
        [memory = std::move(*latest_memory_)](const Request& step) {
          Produced produced;
          produced.schedule = planner::place_recorded(
              step.trace, planner::hoist_releases(step.trace, memory), step.limits, step.work);
          if (!produced.schedule) {
            produced.why_not = "its blocks could not be placed within the budget of " +
                               format_bytes(step.limits.space);
          }
          return produced;
        });
  latest_memory_.reset();
}

void StepPlanner::produce_as_given(Program& program) {
  start(program, 0, [producer = options_.producer](const Request& step) {
    Produced produced;
    produced.schedule = producer(step.trace, step.limits, step.foreign);
    if (!produced.schedule) produced.why_not = "no schedule was given";
    return produced;
  });
}

// Every schedule is checked before it is followed.
void StepPlanner::check(Produced& produced, const StepTrace& trace, const PlanLimits& limits,
                        Producer producer) {
  if (!produced.schedule) return;
  const auto wrong = schedule_violations(trace, limits, *produced.schedule, 1);
  if (wrong.empty()) return;
  produced.schedule.reset();
  produced.why_not = (producer == Producer::kGiven ? "the given schedule is not valid here: "
                                                   : "the schedule that was made is wrong: ") +
                     wrong.front();
}

// Whether its time is compared with that in ample space and with bounds. A schedule that
// releases nothing takes no longer.
bool StepPlanner::is_compared(const Schedule& schedule, Producer producer) {
  return producer == Producer::kReleases || releases(schedule);
}

// A policy's own step states no time, a given schedule that of other costs and another budget.
void StepPlanner::state_times(Produced& produced, const Request& step, Producer producer) {
  Schedule& schedule = *produced.schedule;
  if (producer == Producer::kGiven)
    schedule.ample_time = schedule.time_bound = schedule.any_order_bound = Nanos(0);
  produced.time = schedule.time;
  if (!is_compared(schedule, producer)) return;
  schedule.ample_time = planner::ample_time(step.trace, step.fastest);
  if (producer == Producer::kReleases) return;
  const ScheduleCost cost = simulate(step.trace, step.limits, schedule);
  produced.time = cost.time + planner::time_between_steps(schedule, step.limits);
  if (producer == Producer::kGiven) return;
  schedule.time = produced.time;
  schedule.recomputed = cost.recomputed;
}

// The memory that the program's schedule may use.
PlanLimits StepPlanner::limits_of(const Program& program) const {
  PlanLimits allowed = limits();
  // adopt() compares the plan's need with the space once the need is known.
  if (program.producer == Producer::kOrder) allowed.space = kUnlimited;
  // The policy's copies fitted on the tiers where it put them.
  if (program.producer == Producer::kRecorded) allowed.tier_space = kUnlimited;
  return allowed;
}

void StepPlanner::start(Program& program, int64_t work, Produce produce) {
  auto task = std::make_shared<std::packaged_task<Produced()>>(
      [produce = std::move(produce),
       step =
           Request{program.trace, limits(), fastest_limits(), program.initial.foreign(), work},
       allowed = limits_of(program), by = program.producer, background = options_.background,
       before_use = options_.before_use, &stop = stop_]() mutable {
        if (background) let_others_go_first();
        const auto begin = std::chrono::steady_clock::now();
        Produced produced = produce(step);
        check(produced, step.trace, allowed, by);
        produced.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        produced.made_from = fingerprint(step.trace, step.limits, step.foreign, step.work);
        if (produced.schedule) state_times(produced, step, by);
        if (produced.schedule && before_use) {
          before_use(simulate(step.trace, step.limits, *produced.schedule).tier_peak, stop);
        }
        produced.trace = std::move(step.trace);
        return produced;
      });
  const auto run = [task] { (*task)(); };
  try {
    producers_thread_ = options_.thread ? options_.thread(run) : std::thread(run);
  } catch (const std::system_error& error) {
    if (options_.background) {
      if (program.settled) return;  // it goes without bounds
      const std::string why = "no thread could be started for planning: ";
      program.best ? settle(program) : give_up(program, why + error.what());
      return;
    }
    run();  // the session would wait for it anyway
  }
  producing_for_ = program.signature;
  producing_ = task->get_future();
  residency_.measurements().set_learning(false);  // operators run slower beside it
  if (options_.background) return;
  const auto begin = std::chrono::steady_clock::now();
  finish_planning();
  planning_time_ +=
      Nanos(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
}

void StepPlanner::finish_planning() {
  if (!producing_.valid()) return;
  if (on_planning_) on_planning_();
  producing_.wait();
  take_produced();
}

void StepPlanner::take_produced() {
  if (!producing_.valid() ||
      producing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return;
  }
  if (producers_thread_.joinable()) producers_thread_.join();
  residency_.measurements().set_learning(true);
  Produced produced;
  try {
    produced = producing_.get();
  } catch (const std::exception& error) {
    produced.why_not = error.what();
  } catch (...) {
    produced.why_not = "planning failed";
  }
  residency_.effort().examine(produced.work * kExaminedPerCall);
  const auto program = std::find_if(programs_.begin(), programs_.end(), [&](const auto& p) {
    return p->signature == producing_for_;  // no match: forgotten meanwhile
  });
  if (program != programs_.end()) adopt(**program, std::move(produced));
}

void StepPlanner::adopt(Program& program, Produced produced) {
  if (produced.bounds && program.schedule) {
    produced.bounds->write_to(program.schedule->schedule);
  }
  if (program.settled) return;  // meanwhile: the previous schedule failed
  if (!produced.schedule) {
    program.best ? settle(program) : give_up(program, produced.why_not);
    return;
  }
  Schedule& schedule = *produced.schedule;
  const std::string made = "; plan " + fingerprint_text(fingerprint(schedule)) + " made from " +
                           fingerprint_text(produced.made_from);
  const std::string operators = std::to_string(program.trace.ops.size()) + " operators in ";
  if (program.producer == Producer::kOrder) {
    const Bytes need = residency_.storages().bytes_in_use() + schedule.peak;
    if (need > capacity()) {
      program.producer = without_order();
      program.order = planner::order_of(schedule);
      say("without releases a step needs at least " + format_bytes(need) + "; the budget is " +
          format_bytes(capacity()) +
          (options_.search ? ": searching for what to release"
                           : ": planning with the policy's releases"));
      return;
    }
    program.settled = true;
    say("steps now follow a plan: " + operators + format_bytes(need) + " (at least " +
        format_bytes(program_order_peak(program.trace)) +
        " in program order, with nothing in place)" + made);
  } else if (program.producer == Producer::kGiven) {
    program.settled = true;
    say("steps now follow the given plan: " + operators + format_bytes(schedule.peak) + made);
  } else {
    say("steps now follow a plan: " + operators + format_bytes(schedule.peak) +
        (program.producer == Producer::kReleases ? ", " + schedule.method
                                                 : ", releases taken from the policy") +
        (in_program_order(schedule) ? "" : ", in another order") + moving(schedule) + made);
  }
  program.schedule = std::make_shared<BoundSchedule>(
      BoundSchedule{std::move(produced.trace), std::move(schedule), program.initial,
                    produced.seconds, produced.made_from, produced.time});
  program.worth_searching = std::move(produced.worth_searching);
  program.steps = program.failures = 0;
  program.least = Nanos(0);
  current_ = program.schedule;
  ++counts_.plans;
}

// --- the trial ---

// Judges the program's schedule by a step that followed it.
void StepPlanner::judge(Program& program, Nanos took) {
  if (program.settled) return;
  if (program.schedule == program.best) {  // its trial is over; the next search goes on
    produce(program);
    return;
  }
  if (program.steps++ > 0 || program.producer == Producer::kRecorded) {
    program.least = program.least == Nanos(0) ? took : std::min(program.least, took);
  }
  const bool search = program.producer == Producer::kReleases;
  if (program.steps < (search ? kTrialSteps : kRecordedTrialSteps)) return;
  const Nanos before = program.best ? program.best_time : program.policy_time;
  const double slowdown =
      program.best
          ? 1
          : options_.max_slowdown.value_or(search ? kSearchSlowdown : kRecordedSlowdown);
  const double share =
      static_cast<double>(program.least.count()) / static_cast<double>(before.count());
  const bool better = search ? share < slowdown : share <= slowdown;
  if (better) {
    program.best = program.schedule;
    program.best_time = program.least;
  } else {
    const std::string other = program.best ? "the previous plan" : "the policy";
    say("steps follow " + other + " again: under the new plan they take " +
        std::to_string(std::lround(100 * (share - 1))) + " % longer");
    program.schedule.reset();
  }
  if (!search || program.searches >= kSearches) {
    settle(program);
    return;
  }
  program.schedule = program.best;
  produce(program);
}

// Uses the best schedule found from now on.
void StepPlanner::settle(Program& program) {
  program.settled = true;
  program.schedule = std::move(program.best);
  current_ = program.schedule;
  if (!program.schedule) refused_.insert(program.signature);
}

void StepPlanner::compute_bounds() {
  if (options_.background) return;
  for (const auto& program : programs_) {
    if (program->schedule && program->schedule == current_) produce_bounds(*program);
  }
}

// After all searches for the program, so that none of its schedules waits for it.
void StepPlanner::produce_bounds(Program& program) {
  if (!options_.time_bound || !program.settled || program.bounded || producing_.valid()) return;
  program.bounded = true;
  const std::shared_ptr<BoundSchedule> bound = program.schedule;
  if (!bound || !is_compared(bound->schedule, program.producer)) return;
  start(program, 0, [this, bound](const Request& step) {
    Produced produced;
    produced.bounds = planner::bound_time(bound->schedule, bound->trace, step.fastest, &stop_);
    return produced;
  });
}

void StepPlanner::give_up(Program& program, const std::string& why) {
  say("such steps run under the policy: " + why);
  refused_.insert(program.signature);
  program.settled = true;
  program.schedule.reset();
  program.best.reset();
  current_.reset();
}

// --- limits ---

PlanLimits StepPlanner::limits() const {
  const LinkRates link = costs_.link_rates();
  PlanLimits limits;
  limits.space = capacity();
  limits.tier_space = residency_.view().tier_space();
  limits.latency = link.latency;
  limits.out_bandwidth = link.out;
  limits.in_bandwidth = link.in;
  limits.out_beside_bandwidth = link.out_beside;
  limits.in_beside_bandwidth = link.in_beside;
  constexpr Bytes kMoved{1 << 30};
  const Nanos move_time = costs_.move_time(kMoved);
  limits.move_bandwidth =
      static_cast<double>(kMoved.count()) / static_cast<double>(move_time.count()) * 1e9;
  limits.least_move = costs_.move_time(Bytes(0));
  return limits;
}

PlanLimits StepPlanner::fastest_limits() const {
  PlanLimits fastest = limits();
  fastest.out_bandwidth = std::max(fastest.out_bandwidth, costs_.fastest_offload());
  fastest.in_bandwidth = std::max(fastest.in_bandwidth, costs_.fastest_reload());
  return fastest;
}

}  // namespace tidemark
