#include "models/dry_run.h"

#include <algorithm>
#include <limits>
#include <optional>

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

constexpr size_t kTrialRounds = 8;
constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::max();

// What was live at the peak; none if the program does not complete within the budget, with at
// most so many recomputations in a step.
std::optional<CategoryBytes> run(const SessionOptions& options, const Program& program,
                                 int64_t most_recomputations) {
  try {
    Session session(options);
    for (const std::function<void()>& step : program()) {
      if (session.step(step).recomputes > most_recomputations) return std::nullopt;
    }
    return session.peak_live();
  } catch (const OutOfMemory&) {
    return std::nullopt;
  }
}

// Room for everything and as much again: copies are rounded up on the disk, and what only
// recipes still read is there as well.
bool tiers_are_ample(const SessionOptions& options, const UnmanagedNeed& need) {
  return options.host_limit + options.disk_limit >= 2 * need.peak;
}

// Each step several times: what tiers hold goes on from step to step.
Program repeated(const Program& program) {
  return [&program] {
    std::vector<std::function<void()>> steps;
    for (const std::function<void()>& step : program()) {
      steps.insert(steps.end(), kTrialRounds, step);
    }
    return steps;
  };
}

}  // namespace

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
  options.policy = "delta";
  options.residency.austere_only = true;
  options.unmanaged_peak.reset();

  // Counted in units of kAlignment: low is infeasible (or untried), high feasible.
  const int64_t unit = kAlignment.count();
  int64_t low = need.largest_operator.count() / unit;
  int64_t high = need.peak.count() / unit;
  const int64_t most = kMostRecomputations * need.operators;
  MinimumBudget found{need.peak, need.categories, 0};
  // With ample tiers the bound itself is feasible, so it is tried first.
  for (int64_t budget = low; budget < high; budget = low + (high - low) / 2) {
    ++found.probes;
    options.budget = Bytes(budget * unit);
    if (const std::optional<CategoryBytes> peak = run(options, program, most)) {
      high = budget;
      found.budget = Bytes(budget * unit);
      found.categories = *peak;
    } else {
      low = budget + 1;
    }
  }
  // Tiers that are nearly full may turn out to be too small only after some steps.
  options.budget = found.budget;
  while (!tiers_are_ample(options, need) && found.budget < need.peak &&
         !run(options, repeated(program), most)) {
    found.budget = std::min(need.peak, found.budget + align_up(share_of(found.budget, 0.02)));
    options.budget = found.budget;
    ++found.probes;
  }
  return found;
}

SessionOptions feasible_schedule(SessionOptions options, const Program& program,
                                 const UnmanagedNeed& need, const MinimumBudget& minimum) {
  const bool managed = options.policy != "none";
  if (!managed || tiers_are_ample(options, need) || *options.budget >= need.peak)
    return options;
  const Program rounds = repeated(program);
  options.residency.learn_costs = false;
  if (run(simulated(options), rounds, kAnyNumber)) return options;
  options.residency.austere_only = true;
  if (!run(simulated(options), rounds, kAnyNumber)) options.budget = minimum.budget;
  return options;
}

}  // namespace tidemark
