#include "runtime/policy/tide/tide_policy.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/cost/link_rate.h"
#include "runtime/policy/tide/price_policy.h"

namespace tidemark {
namespace {

// Steps after which a new program's plan is made anew, as its operators are timed.
constexpr int kLearningSteps = 1;

// So much longer than without a plan a step may take by one: nothing is left to decide on the
// way, which is not in the time that is modelled.
constexpr double kWorthAPlan = 1.005;

// After so many in a row a plan that cannot be followed is given up.
constexpr int kMostFailures = 3;

// Of a step's time, for each call that rehearsals go through, which takes a fiftieth to a tenth
// of a microsecond: a plan takes as long as some twenty steps.
constexpr Nanos kStepPerEffort{5};

// What such a call counts as, beside what is examined otherwise.
constexpr int64_t kExaminedPerCall = 12;

constexpr const char* kPrice = "price";

std::unique_ptr<ReleasePolicy> unplanned_policy(const PolicySettings& settings,
                                                const Forecast& forecast) {
  if (settings.unplanned != kPrice) {
    PolicySettings its_own = settings;
    its_own.unplanned = kPrice;
    const PolicyInfo& other = find_policy(settings.unplanned);
    if (other.forecasts) {
      throw UsageError(
          "tide cannot go by '" + settings.unplanned +
          "' where it has no plan: that forecasts by the steps before, and would not see the "
          "calls of those that have one");
    }
    return other.make(its_own);
  }
  const std::string& filter = settings.delta.filter;
  return std::make_unique<PricePolicy>(forecast,
                                       filter.empty() ? nullptr : find_filter(filter).score);
}

}  // namespace

TidePolicy::TidePolicy(const PolicySettings& settings, size_t plans)
    : plans_(plans),
      most_effort_(settings.delta.plan_effort > 0 ? settings.delta.plan_effort : kThorough),
      known_to_fit_(settings.known_to_fit),
      unplanned_(unplanned_policy(settings, forecast_)) {}

void TidePolicy::on_event(const StorageEvent& event) noexcept {
  forecast_.on_event(event);
  unplanned_->on_event(event);
}

void TidePolicy::after_operator(Residency& residency, const Recipe& call) {
  if (!known_to_fit_) forecast_.record(call, residency.costs());
  unplanned_->after_operator(residency, call);
}

void TidePolicy::begin_step(Residency& residency) {
  unplanned_->begin_step(residency);
  forecast_.begin_step();
  script_.reset();  // of a step that threw
  const bool plans = std::any_of(programs_.begin(), programs_.end(),
                                 [](const Program& p) { return p.plan.has_value(); });
  if (plans) residency.follow(&starter_.emplace(*this, residency));
}

std::optional<size_t> TidePolicy::program_that_begins_with(const Storage& first) const {
  const auto begins_so = [&](const Program& program) {
    if (!program.plan) return false;
    const MemoryEvents& memory = program.plan->memory;
    return memory.there < memory.blocks.size() &&
           memory.blocks[memory.there].size == first.size();
  };
  if (begins_so(programs_[forecast_.program()])) return forecast_.program();
  const auto found = std::find_if(programs_.begin(), programs_.end(), begins_so);
  if (found == programs_.end()) return std::nullopt;
  return static_cast<size_t>(found - programs_.begin());
}

MemoryScript::Place TidePolicy::start(Residency& residency, const Storage& first) {
  residency.follow(nullptr);
  const auto program = program_that_begins_with(first);
  if (!program) return {};
  forecast_.expect_program(*program);
  script_.emplace(*programs_[*program].plan, forecast_, residency);
  if (script_->begin()) return script_->place(first);
  script_.reset();
  return {};
}

void TidePolicy::end_step(Residency& residency) {
  const bool planned = program().plan.has_value();
  const bool whole = script_ && script_->end();
  script_.reset();
  if (starter_ && residency.script() == &*starter_) residency.follow(nullptr);
  const bool repeated = forecast_.known() && forecast_.calls() == forecast_.last().calls.size();
  forecast_.end_step();
  unplanned_->end_step(residency);
  if (known_to_fit_ || forecast_.last().calls.empty()) return;
  if (--steps_until_more_ == 0) {
    plans_left_ = std::min(plans_left_ + 1, kMostPlans);
    steps_until_more_ = kStepsPerPlan;
  }
  learn(residency, repeated,
        !planned ? Went::kUnplanned
        : whole  ? Went::kAsPlanned
                 : Went::kAstray);
}

// A step without a plan, then two by each: the second counts, as it begins where such steps
// end. Then the best for as long as steps repeat. Where a step fits as it is, there is nothing
// to plan.
void TidePolicy::learn(Residency& residency, bool repeated, Went went) {
  Program& now = program();
  if (!repeated) {
    now = {};
    now.trial.warm_up = kLearningSteps;
    return;
  }
  Trial& trial = now.trial;
  if (trial.over) {
    trial.failed = went == Went::kAstray ? trial.failed + 1 : 0;
    if (trial.failed >= kMostFailures) now.plan.reset();
    return;
  }
  if (trial.warm_up > 0) {
    --trial.warm_up;
    return;
  }
  if (went == Went::kAsPlanned && !std::exchange(trial.begun, true)) return;
  const StepStats& stats = residency.stats();
  const bool fits = trial.next == 0 && stats.evictions + stats.offloads + stats.clean_drops +
                                               stats.reloads + stats.recomputes ==
                                           0;
  std::vector<PlannedRelease> draft;
  if (now.plan) draft = now.plan->releases;
  const bool first_plan = !trial.best;
  const auto bearable = Nanos(static_cast<int64_t>(static_cast<double>(trial.least.count()) *
                                                   (first_plan ? kWorthAPlan : 1)));
  if (trial.next == 0 || (went == Went::kAsPlanned && stats.modelled < bearable)) {
    trial.least = stats.modelled;
    trial.best = std::move(now.plan);
  }
  now.plan.reset();
  trial.begun = false;
  if (!fits && trial.next == 0 && plans_left_ == 0) return;  // on without one until there is
  if (!fits && trial.next < plans_ && plans_left_ > 0) {
    --plans_left_;
    ++trial.next;
    plan(residency, std::move(draft));
    if (now.plan) return;
  }
  trial.over = true;
  now.plan = std::move(trial.best);
}

void TidePolicy::plan(Residency& residency, std::vector<PlannedRelease> draft) {
  residency.begin_planning();
  const auto [out, in] = link_rates(residency.costs());
  PlanLimits limits;
  limits.room = residency.arena().offsets().capacity();
  limits.tier_room = residency.tier_room();
  limits.latency = out.latency;
  limits.out_bandwidth = out.bytes_per_second;
  limits.in_bandwidth = in.bytes_per_second;
  constexpr Bytes kMoved{1 << 30};
  const Nanos move_time = residency.costs().move_time(kMoved);
  limits.move_bandwidth =
      static_cast<double>(kMoved.count()) / static_cast<double>(move_time.count()) * 1e9;
  const int64_t worth = forecast_.last().duration.count() / kStepPerEffort.count();
  const int64_t effort = std::min(
      most_effort_, plans_made_++ < kMostPlans ? std::clamp(worth, kQuick, kThorough) : kQuick);
  int64_t calls = 0;
  program().plan =
      make_memory_plan(forecast_.last(), limits, find_strangers(residency, forecast_),
                       std::move(draft), effort, &calls);
  residency.count_examined(calls * kExaminedPerCall);
}

std::unique_ptr<ReleasePolicy> make_tide_policy(const PolicySettings& settings) {
  return std::make_unique<TidePolicy>(settings, TidePolicy::kPlans);
}

std::unique_ptr<ReleasePolicy> make_price_policy(const PolicySettings& settings) {
  PolicySettings its_own = settings;
  its_own.unplanned = kPrice;
  return std::make_unique<TidePolicy>(its_own, 0);
}

}  // namespace tidemark
