#include "models/dry_run.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {
namespace {

// Far above what any program takes; the simulator only counts.
constexpr Bytes kUnlimited{int64_t{1} << 50};
constexpr size_t kFewEvents = 64;

Bytes working_set(const Recipe& call) {
  Bytes sum = align_up(call.workspace);
  for (const Recipe::Input& input : call.inputs) sum += input.storage->size();
  for (const Recipe::Output& output : call.outputs) sum += align_up(output.bytes);
  return sum;
}

constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::max();

// So many times as long as by another policy a step has to take for tide to make way for it.
constexpr double kClearly = 1.02;
// So many times as long as the quickest, and a policy is not ranked.
constexpr int64_t kFarLonger = 4;

// A plan of tide's in a trial, of which there are two: a fifth of a second each, as much as so
// many simulated operators together.
constexpr int64_t kTrialPlanEffort = 2'000'000;
constexpr int64_t kPlanningOperators = 20'000;

constexpr Nanos kNever{std::numeric_limits<int64_t>::max()};

// In less than this part of the peak a plan seldom fits, and what tide goes by without one
// matters.
constexpr int64_t kNarrow = 8;

// The next policy is first tried with less than the smallest budget so far by this part of it.
constexpr int64_t kWorthLooking = 64;

// The smallest budget is found to within this part of the largest.
constexpr int64_t kPrecision = 4096;

thread_local DryRunProgress current_progress;

// What the simulations of a dry run have done, of what they may do.
class Effort {
 public:
  bool is_spent() const { return done_ >= kMostSimulated; }
  int64_t done() const { return done_; }
  void add(int64_t operators) {
    done_ += operators;
    if (current_progress) current_progress(operators);
  }

 private:
  int64_t done_ = 0;
};

// Where a simulation is given up.
struct TrialLimits {
  int64_t recomputations = kAnyNumber;  // of all steps together
  Nanos step = kNever;                  // of one step, as far as it is issued
  bool only_first = false;              // of the program's steps
};

// Each step so often: what tiers hold goes on from step to step. None if memory runs out, or a
// limit is passed, or the work is spent.
std::optional<TrialResult> run(const SessionOptions& options, const Program& program,
                               int rounds, const TrialLimits& limits, Effort& effort,
                               StepPrediction* last = nullptr) {
  struct TooMuch {};
  if (effort.is_spent()) return std::nullopt;
  try {
    Session session(options);
    Nanos began{0};
    int64_t recomputed = 0;
    if (options.policy == "tide" && rounds > kRankingRounds) effort.add(kPlanningOperators);
    const auto check = [&] {
      const Residency& residency = session.residency();
      const int64_t recomputes = residency.stats().recomputes;
      effort.add(1 + recomputes - std::exchange(recomputed, recomputes));
      if (effort.is_spent() || recomputes > limits.recomputations) throw TooMuch{};
      if (residency.clock() - began > limits.step) throw TooMuch{};
    };
    session.set_observer([&](std::string_view, const Recipe&) { check(); });
    std::optional<Nanos> first;
    for (const std::function<void()>& step : program()) {
      Nanos sum{0};
      for (int round = 0; round < rounds; ++round) {
        began = session.residency().clock();
        const StepStats& stats = session.step([&] {
          step();
          check();
        });
        if (round >= rounds / 2) sum += stats.modelled;
      }
      if (!first) first = Nanos(sum.count() / (rounds - rounds / 2));
      if (limits.only_first) break;
    }
    if (last) {
      last->step = session.last_step();
      if (session.host()) last->host_peak = session.host()->peak();
      if (session.disk()) last->disk_peak = session.disk()->peak();
    }
    return TrialResult{first.value_or(Nanos(0)), session.peak_live()};
  } catch (const OutOfMemory&) {
    return std::nullopt;
  } catch (const TooMuch&) {
    return std::nullopt;
  }
}

// Room for everything and as much again: copies are rounded up on the disk, and what only
// recipes still read is there as well.
bool tiers_are_ample(const SessionOptions& options, const UnmanagedNeed& need) {
  return options.host_limit + options.disk_limit >= 2 * need.peak;
}

bool is_plain_tide(const SessionOptions& options) {
  return options.policy == "tide" && options.delta.filter.empty();
}

// As completing_schedule(). Half of the work is left for trying what ranks first.
std::optional<SessionOptions> completing_within(const SessionOptions& options,
                                                const Program& program,
                                                const TrialLimits& limits, Effort& effort) {
  Nanos least = kNever;
  const Trial trial = [&](const SessionOptions& tried,
                          int rounds) -> std::optional<TrialResult> {
    const bool ranks = rounds <= kRankingRounds;
    if (ranks && 2 * effort.done() >= kMostSimulated) return std::nullopt;
    TrialLimits its = limits;
    if (tried.policy == options.policy) its.recomputations = kAnyNumber;
    // One that takes far longer than another is out of the running.
    if (ranks && least != kNever) {
      its.step = std::min(its.step, Nanos(least.count() * kFarLonger));
    }
    const auto result = run(simulated(tried), program, rounds, its, effort);
    if (ranks && result) least = std::min(least, result->step);
    return result;
  };
  return completing_schedule(options, trial);
}

std::string quicker_unplanned(SessionOptions options, const Trial& trial) {
  const auto step_by = [&](const std::string& policy) {
    options.policy = policy;
    const std::optional<TrialResult> result = trial(options, kTrialRounds);
    return result ? result->step : kNever;
  };
  const std::string usual = options.unplanned, other = "delta";
  return step_by(other) < step_by(usual) ? other : usual;
}

}  // namespace

DryRunProgress set_dry_run_progress(DryRunProgress report) {
  return std::exchange(current_progress, std::move(report));
}

SessionOptions simulated(SessionOptions options) {
  if (options.device == "cpu") options.device = "sim:host";
  if (options.device.starts_with("cuda")) options.device = "sim:" + options.device;
  options.event_capacity = kFewEvents;
  return options;
}

UnmanagedNeed measure_unmanaged(const SessionOptions& real, const Program& program) {
  SessionOptions options = simulated(real);
  options.policy = "none";
  options.budget = kUnlimited;
  options.unmanaged_peak.reset();
  options.host_limit = options.disk_limit = Bytes(0);

  UnmanagedNeed need;
  Session session(options);
  session.set_observer([&need](std::string_view name, const Recipe& call) {
    const Bytes bytes = working_set(call);
    if (bytes <= need.largest_operator) return;
    need.largest_operator = bytes;
    need.operator_name = name;
  });
  bool first = true;
  for (const std::function<void()>& step : program()) {
    const StepStats& stats = session.step(step);
    need.operators = std::max(need.operators, stats.operators);
    if (first) need.first_step = stats.duration;
    first = false;
  }
  need.peak = session.peak_reserved();
  need.categories = session.peak_live();
  need.live = need.categories.total();
  return need;
}

MinimumBudget find_minimum_budget(const SessionOptions& real, const Program& program,
                                  const UnmanagedNeed& need) {
  SessionOptions options = simulated(real);
  options.unmanaged_peak.reset();
  const int64_t most = kMostRecomputations * need.operators;
  Effort search;
  MinimumBudget found = least_budget(
      options, need.largest_operator, need.peak, [&](const SessionOptions& tried, int rounds) {
        return run(tried, program, rounds, {.recomputations = most}, search);
      });
  if (found.budget == need.peak) found.categories = need.categories;
  // Tiers that are nearly full may turn out to be too small only after some steps.
  options.policy = found.policy;
  options.budget = found.budget;
  Effort proof;
  while (!tiers_are_ample(options, need) && found.budget < need.peak &&
         !run(options, program, kTrialRounds, {.recomputations = most}, proof)) {
    if (proof.is_spent()) {  // where nothing is released there is nothing to prove
      found.budget = need.peak;
      break;
    }
    found.budget = std::min(need.peak, found.budget + align_up(share_of(found.budget, 0.02)));
    options.budget = found.budget;
    ++found.probes;
  }
  return found;
}

SessionOptions feasible_schedule(SessionOptions options, const Program& program,
                                 const UnmanagedNeed& need, const MinimumBudget& minimum) {
  if (options.policy == "none" || *options.budget >= need.peak) return options;
  Effort effort;
  if (tiers_are_ample(options, need)) {
    const Trial trial = [&](const SessionOptions& tried, int rounds) {
      return run(simulated(tried), program, rounds, {}, effort);
    };
    const bool narrow = *options.budget * kNarrow < need.peak;
    if (narrow && is_plain_tide(options)) options.unplanned = quicker_unplanned(options, trial);
    return options;
  }
  options.residency.learn_costs = false;
  options.delta.plan_effort = kTrialPlanEffort;
  const TrialLimits limits{.recomputations = kMostRecomputations * need.operators};
  if (const auto found = completing_within(options, program, limits, effort)) return *found;
  options.policy = minimum.policy;
  options.budget = minimum.budget;
  return options;
}

SessionOptions feasible_schedule_sparing_disk(const SessionOptions& options,
                                              const Program& program, const UnmanagedNeed& need,
                                              const MinimumBudget& minimum) {
  SessionOptions bare = options;
  bare.disk_limit = Bytes(0);
  const bool fits = options.policy == "none" || *options.budget >= need.peak;
  if (fits || tiers_are_ample(bare, need)) {
    return feasible_schedule(bare, program, need, minimum);
  }
  bare.residency.learn_costs = false;
  bare.delta.plan_effort = kTrialPlanEffort;
  Effort effort;
  // Without tide's plans, which take the host far longer than such a step: they help either.
  const bool is_tide = options.policy == "tide";
  const auto unplanned = [&](SessionOptions tried, std::string_view policy,
                             const TrialLimits& limits) {
    tried.policy = policy;
    return run(simulated(std::move(tried)), program, kRankingRounds, limits, effort);
  };
  const std::string own = is_tide ? options.unplanned : options.policy;
  TrialLimits limits{.recomputations = kMostRecomputations * need.operators};
  if (const auto with_disk = unplanned(options, own, limits)) {
    limits.step = Nanos(
        static_cast<int64_t>(kWorthTheDisk * static_cast<double>(with_disk->step.count())));
  }
  const auto is_quick = [&](std::string_view policy) {
    const auto without_disk = unplanned(bare, policy, limits);
    return without_disk && without_disk->step <= limits.step;
  };
  const auto policies_tried = policies();
  const bool is_worth_it =
      is_tide ? std::none_of(policies_tried.begin(), policies_tried.end(),
                             [&](const PolicyInfo& policy) {
                               return policy.name != "tide" && is_quick(policy.name);
                             })
              : !is_quick(own);
  if (!is_worth_it) {
    if (const auto found = completing_within(bare, program, limits, effort)) {
      if (is_tide || found->policy == options.policy) return *found;
    }
  }
  return feasible_schedule(options, program, need, minimum);
}

std::optional<StepPrediction> predict_step(SessionOptions options, const Program& program) {
  options.delta.plan_effort = kTrialPlanEffort;
  Effort effort;
  StepPrediction prediction;
  if (!run(simulated(options), program, kTrialRounds, {.only_first = true}, effort,
           &prediction))
    return std::nullopt;
  return prediction;
}

std::optional<SessionOptions> completing_schedule(const SessionOptions& options,
                                                  const Trial& trial) {
  const bool is_tide = options.policy == "tide";
  if (!is_tide && trial(options, kTrialRounds)) return options;
  struct Ranked {
    const PolicyInfo* policy;
    Nanos step;
  };
  std::vector<Ranked> others;
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == options.policy || policy.name == "tide") continue;
    SessionOptions other = options;
    other.policy = policy.name;
    if (const auto result = trial(other, kRankingRounds)) {
      others.push_back({&policy, result->step});
    }
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const Ranked& a, const Ranked& b) { return a.step < b.step; });
  std::optional<SessionOptions> tide;
  Nanos by_tide = kNever;
  for (const Ranked& other : others) {
    const bool by_price = other.policy->name == SessionOptions().unplanned;
    const bool possible =
        by_price || (options.delta.filter.empty() && !other.policy->forecasts);
    if (!is_tide || !possible) continue;
    SessionOptions over = options;
    over.unplanned = other.policy->name;
    const auto result = trial(over, kTrialRounds);
    if (!result) continue;
    tide = over;
    by_tide = result->step;
    break;
  }
  for (const Ranked& other : others) {
    if (static_cast<double>(by_tide.count()) <=
        kClearly * static_cast<double>(other.step.count()))
      break;
    SessionOptions another = options;
    another.policy = other.policy->name;
    if (trial(another, kTrialRounds)) return another;
  }
  return tide;
}

MinimumBudget least_budget(SessionOptions options, Bytes least, Bytes most,
                           const Trial& trial) {
  // Counted in units of kAlignment.
  const int64_t unit = kAlignment.count();
  const int64_t lowest = least.count() / unit;
  MinimumBudget found{most, {}, 0, std::string(kLastResorts.back())};
  const auto completes = [&](int64_t budget) {
    ++found.probes;
    options.budget = Bytes(budget * unit);
    const std::optional<TrialResult> result = trial(options, 1);
    if (!result) return false;
    found = {*options.budget, result->live, found.probes, options.policy};
    return true;
  };
  options.policy = kLastResorts.back();
  if (lowest >= most.count() / unit || completes(lowest)) return found;
  for (const std::string_view policy : kLastResorts) {
    options.policy = policy;
    int64_t low = lowest, high = found.budget.count() / unit;
    if (policy != kLastResorts.front()) {
      const int64_t less = std::max(low, high - 1 - high / kWorthLooking);
      if (less >= high || !completes(less)) continue;
      high = less;
    }
    while ((high - low) * kPrecision > most.count() / unit) {
      const int64_t middle = low + (high - low) / 2;
      if (completes(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
  }
  return found;
}

SessionOptions with_budget(double share, const Program& program, SessionOptions options) {
  if (!(share > 0)) {
    throw UsageError("[with_budget] a share of " + std::to_string(share) + " is not above 0");
  }
  const UnmanagedNeed need = measure_unmanaged(options, program);
  options.unmanaged_peak = need.peak;
  const MinimumBudget minimum = find_minimum_budget(options, program, need);
  options.budget = align_down(share_of(need.peak, std::min(share, 1.0)));
  if (*options.budget < minimum.budget) {
    throw InfeasibleBudget(*options.budget, minimum.budget);
  }
  return feasible_schedule(options, program, need, minimum);
}

std::string ReleaseSchedule::name() const {
  return where_unplanned.empty() ? policy : policy + " over " + where_unplanned;
}

ReleaseSchedule schedule_of(const SessionOptions& options) {
  const bool its_own =
      options.policy != "tide" || options.unplanned == SessionOptions().unplanned;
  return {options.policy, its_own ? "" : options.unplanned};
}

}  // namespace tidemark
