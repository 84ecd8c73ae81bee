#include "runtime/delta/tide/tide_policy.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/cost/link_rate.h"
#include "runtime/delta/policies/policy.h"

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

constexpr Nanos kSomeTime{1'000'000};

bool has_tier(const Residency& residency) { return residency.tier_room() > Bytes(0); }

}  // namespace

std::optional<Nanos> TidePolicy::evict_price(const Residency& residency,
                                             Storage& storage) const {
  const bool rather_offload = storage.category == Category::kGradient && has_tier(residency);
  if (rather_offload || !residency.may_evict(storage)) return std::nullopt;
  const auto again = residency.recompute_cost(storage, Forecast::kNever);
  if (!again) return std::nullopt;
  // The more has been computed again in this step, the less will do any good.
  const Nanos program = forecast_.time();
  const Nanos recomputed = residency.clock() - step_began_ - program;
  const double thrash = static_cast<double>(recomputed.count()) /
                        static_cast<double>(std::max(program, kSomeTime).count());
  return Nanos(static_cast<int64_t>(
      std::min(1e15, static_cast<double>(again->count()) * (1 + 8 * thrash * thrash))));
}

// What compute waits for: copies under way, this one, and what it takes to come back beyond the
// time there is. Where the link is what everything waits for, each copy costs its own time, so
// no more is counted of those under way.
Nanos TidePolicy::offload_price(const Residency& residency, const Storage& storage) const {
  const Nanos out = residency.costs().offload_time(storage.bytes());
  const Nanos backlog = std::clamp(link_free_ - residency.clock(), Nanos(0), out);
  const Nanos back = residency.reload_cost(storage);
  const Nanos until = until_next_use(residency, storage);
  return backlog + out + std::max(Nanos(0), back - until);
}

// Of what can be done with it.
std::optional<Nanos> TidePolicy::release_price(const Residency& residency,
                                               Storage& storage) const {
  std::optional<Nanos> least = evict_price(residency, storage);
  if (!has_tier(residency) || storage.offload_pinned) return least;
  const Nanos offload = offload_price(residency, storage);
  return least ? std::min(*least, offload) : offload;
}

Nanos TidePolicy::until_next_use(const Residency& residency, const Storage& storage) const {
  if (!forecast_.known()) return residency.clock() - storage.last_access;
  return std::min(forecast_.until_next_use(storage), 2 * forecast_.last().duration);
}

Storage* TidePolicy::choose(const Residency& residency) {
  // What has a copy and is not wanted soon is free: the one that frees most for longest.
  Storage* best = least([&](const Storage& s) -> std::optional<double> {
    if (!residency.may_release(s) || !residency.has_copy(s)) return std::nullopt;
    const Nanos until = until_next_use(residency, s);
    if (until <= 4 * residency.reload_cost(s)) return std::nullopt;
    return -static_cast<double>(s.size().count()) * static_cast<double>(until.count());
  });
  if (best) return best;
  if (options_.filter) {
    return index().best(options_.filter, residency.clock(),
                        [&](const Storage& s) { return residency.may_release(s); });
  }
  return least([&](Storage& s) -> std::optional<double> {
    if (!residency.may_release(s)) return std::nullopt;
    const auto price = release_price(residency, s);
    if (!price) return std::nullopt;
    const Nanos until = std::max(Nanos(1), until_next_use(residency, s));
    return static_cast<double>(price->count()) /
           (static_cast<double>(s.size().count()) * static_cast<double>(until.count()));
  });
}

std::optional<Nanos> TidePolicy::price(const Residency& residency, Storage& storage) {
  const Nanos until = until_next_use(residency, storage);
  Nanos price;
  if (residency.has_copy(storage)) {
    price = std::max(Nanos(0), 4 * residency.reload_cost(storage) - until);
  } else {
    const auto least = release_price(residency, storage);
    if (!least) return std::nullopt;
    price = *least;
  }
  // What is wanted again at once makes room for a moment only.
  const Nanos horizon(forecast_.last().duration.count() / 16);
  if (until >= horizon) return price;
  const double often = static_cast<double>(horizon.count()) /
                       static_cast<double>(std::max(Nanos(1), until).count());
  return Nanos(
      static_cast<int64_t>(std::min(1e15, static_cast<double>(price.count()) * often)));
}

Action TidePolicy::decide(const Residency& residency, Storage& storage) {
  const auto again = evict_price(residency, storage);
  if (again && *again <= offload_price(residency, storage)) return Action::kEvict;
  link_free_ =
      std::max(link_free_, residency.clock()) + residency.costs().offload_time(storage.bytes());
  return Action::kOffload;
}

bool TidePolicy::recompute_offloaded(const Residency& residency, Storage& storage) {
  const Nanos reload = residency.reload_cost(storage);
  const auto again = residency.recompute_cost(storage, reload);
  return again && *again < reload;
}

void TidePolicy::on_evicted(Storage& storage) {
  if (storage.users() == 0) forecast_.ended(storage);
}

void TidePolicy::after_operator(Residency& residency, const Recipe& call) {
  if (!known_to_fit_) forecast_.record(call, residency.costs());
}

void TidePolicy::begin_step(Residency& residency) {
  step_began_ = residency.clock();
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
void TidePolicy::learn(const Residency& residency, bool repeated, Went went) {
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
  if (!fits && trial.next < options_.plans && plans_left_ > 0) {
    --plans_left_;
    ++trial.next;
    plan(residency, std::move(draft));
    if (now.plan) return;
  }
  trial.over = true;
  now.plan = std::move(trial.best);
}

void TidePolicy::plan(const Residency& residency, std::vector<PlannedRelease> draft) {
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
  const int64_t effort =
      plans_made_++ < kMostPlans ? std::clamp(worth, kQuick, kThorough) : kQuick;
  program().plan = make_memory_plan(
      forecast_.last(), limits, find_strangers(residency, forecast_), std::move(draft), effort);
}

std::unique_ptr<ReleasePolicy> make_tide_policy(const PolicySettings& settings) {
  TideOptions options;
  const std::string& filter = settings.delta.filter;
  if (!filter.empty()) options.filter = find_heuristic(filter).score;
  return std::make_unique<TidePolicy>(options, settings.known_to_fit);
}

}  // namespace tidemark
