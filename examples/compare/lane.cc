#include "examples/compare/lane.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/device/device.h"
#include "runtime/executor/step_planner.h"
#include "runtime/telemetry/summary.h"

namespace tidemark::compare {
namespace {

// Enough for the events of a step, even with many recomputations.
constexpr size_t kEvents = 1 << 17;

}  // namespace

Bytes budget_of(const LaneSpec& spec, const Ground& ground) {
  const Bytes peak = ground.need.peak;
  const Bytes budget = spec.budget      ? spec.budget->resolve(peak)
                       : spec.managed() ? ground.budget
                                        : peak;
  const Bytes least = spec.managed() ? ground.minimum.budget : peak;
  if (budget < least) {
    throw InfeasibleBudget(budget, least, !spec.managed() || ground.minimum.is_least,
                           " (lane " + spec.name() + ")");
  }
  return budget;
}

Lane::Lane(int id, const Job& job, const Ground& ground) : id_(id), job_(job), ground_(ground) {
  view_.id = id;
}

Lane::~Lane() { close(); }

void Lane::close() {
  if (session_) session_->make_current();
  training_.reset();
  recorder_.reset();
  session_.reset();
}

std::string Lane::title() const {
  return "lane " + std::to_string(id_) + " (" + view_.spec.name() + ")";
}

std::string Lane::open(const LaneSpec& spec, const std::optional<CarriedState>& from) {
  budget_of(spec, ground_);
  std::optional<CarriedState> state = from;
  const LaneSpec before = view_.spec;
  const bool had_one = usable();
  if (!state && had_one) state = carry_out();
  try {
    build(spec, state);
  } catch (const std::exception&) {
    if (had_one) build(before, state);
    throw;
  }
  return state ? state->checksum : "";
}

void Lane::build(const LaneSpec& spec, const std::optional<CarriedState>& from) {
  close();
  view_.spec = spec;
  view_.budget = budget_of(spec, ground_);
  view_.status = LaneStatus::kStarting;
  SessionOptions options = ground_.options;
  options.policy = spec.policy;
  options.delta.filter = spec.filter;
  options.unmanaged_peak = ground_.need.peak;
  options.budget = view_.budget;
  options.event_capacity = kEvents;
  if (!spec.managed()) options.host_limit = options.disk_limit = Bytes(0);
  const Program program = job_.dry_run();
  options = feasible_schedule(options, program, ground_.need, ground_.minimum);
  view_.schedule = schedule_of(options);

  session_ = std::make_unique<Session>(options);
  recorder_ = std::make_unique<PictureRecorder>(*session_);
  training_ = job_.start();
  if (from) carry_in(*training_, *from);
  view_.steps_done = from ? from->step : training_->first_step();
  view_.status = LaneStatus::kRunning;
  view_.error.clear();
  view_.out_of_memory = false;
  view_.checksum.reset();
  view_.step_time.reset();
  view_.recent.clear();
  warm_ = false;
}

void Lane::step(const std::function<void()>& on_planning) {
  session_->make_current();
  StepOutcome outcome;
  training_->prepare(view_.steps_done);
  if (StepPlanner* planner = session_->planner()) planner->on_planning(on_planning);
  view_.last = session_->step([&] { outcome = training_->step(); });
  training_->after_step(++view_.steps_done);
  view_.loss = outcome.loss;
  view_.picture = recorder_->take();
  view_.total += view_.last;
  view_.peak_reserved = std::max(view_.peak_reserved, view_.last.peak_reserved);
  const int64_t step = view_.steps_done - 1;
  std::vector<TimedStep>& recent = view_.recent;
  if (recent.size() == kRecentSteps || (!warm_ && recent.size() == 1)) {
    warm_ = true;
    recent.erase(recent.begin());
  }
  recent.push_back({step, view_.last.duration});
  view_.step_time = median_time(recent);
  view_.series.add(step, to_ms(view_.last.duration), view_.loss);
}

CarriedState Lane::carry_out() {
  session_->make_current();
  return compare::carry_out(*training_, view_.steps_done);
}

std::optional<std::string> Lane::checksum() {
  if (!usable()) return std::nullopt;
  session_->make_current();
  return training_->checksum();
}

void Lane::fail(const std::string& why, bool out_of_memory) {
  view_.status = LaneStatus::kFailed;
  view_.error = why;
  view_.out_of_memory = out_of_memory;
}

void Lane::finish() {
  view_.status = LaneStatus::kFinished;
  view_.checksum = checksum();
}

}  // namespace tidemark::compare
