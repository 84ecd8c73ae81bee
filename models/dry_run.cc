#include "models/dry_run.h"

#include <algorithm>
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

struct TooMuchRecomputation {};

std::optional<CategoryBytes> run_austere(SessionOptions options, const Program& program,
                                         Bytes budget, int64_t most_recomputations) {
  options.budget = budget;
  try {
    Session session(options);
    session.set_observer([&session, most_recomputations](std::string_view, const Recipe&) {
      if (session.residency().stats().recomputes > most_recomputations) {
        throw TooMuchRecomputation();
      }
    });
    for (const std::function<void()>& step : program()) session.step(step);
    return session.peak_live();
  } catch (const OutOfMemory&) {
    return std::nullopt;
  } catch (const TooMuchRecomputation&) {
    return std::nullopt;
  }
}

}  // namespace

SessionOptions simulated(SessionOptions options) {
  if (options.device == "cpu") options.device = "sim:host";
  options.event_capacity = kFewEvents;
  return options;
}

UnmanagedNeed measure_unmanaged(const SessionOptions& real, const Program& program) {
  SessionOptions options = simulated(real);
  options.policy = PolicyKind::kNone;
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
  options.policy = PolicyKind::kDelta;
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
    if (const std::optional<CategoryBytes> peak =
            run_austere(options, program, Bytes(budget * unit), most)) {
      high = budget;
      found.budget = Bytes(budget * unit);
      found.categories = *peak;
    } else {
      low = budget + 1;
    }
  }
  return found;
}

}  // namespace tidemark
