// Bounds of a step's time against the best schedules of tiny steps, found by trying everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/planner/bounds/any_order_bound.h"
#include "runtime/planner/bounds/time_bound.h"
#include "runtime/planner/releases/release_planner.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"
#include "tests/runtime/planner/bounds/least_time.h"
#include "tests/runtime/planner/bounds/quickest_schedule.h"
#include "tests/runtime/planner/bounds/repeated_step.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner {
namespace {

using testing::cases;
using testing::kSanitized;
using testing::TraceBuilder;
using testing::units;
using testing::tiny::LeastTime;
using testing::tiny::QuickestSchedule;
using testing::tiny::TinyStep;

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  uint32_t below(size_t n) { return static_cast<uint32_t>(random_() % n); }
  bool one_in(uint32_t n) { return below(n) == 0; }
  int64_t size(uint32_t most) { return 1 + below(most); }
  int64_t cost() { return int64_t{1'000'000} * (1 + below(9)); }

 private:
  std::mt19937 random_;
};

// Two to four layers; backward reads what they made, the last first, and maybe a call does that
// nothing waits for. Four to eight calls, of which one may have a variant that reads what
// another layer made.
StepTrace tiny_tower(Dice& dice, uint32_t most_layers) {
  TraceBuilder step;
  std::vector<uint32_t> made;
  if (dice.one_in(3)) made.push_back(step.upload(dice.size(2)));
  const uint32_t layers = 2 + dice.below(most_layers - 1);
  for (uint32_t i = 0; i < layers; ++i) {
    std::vector<uint32_t> inputs;
    if (!made.empty()) inputs.push_back(made.back());
    made.push_back(step.call(inputs, dice.cost(), dice.size(4)));
    if (dice.one_in(3)) step.last().workspace = units(dice.below(3));
    if (dice.one_in(8)) step.item(made.back()).may_evict = false;
    if (dice.one_in(8)) step.item(made.back()).may_offload = false;
  }
  uint32_t gradient = made.back();
  const uint32_t floats = layers < 4 ? dice.below(2 * size_t{layers}) : layers;
  const uint32_t varies = dice.below(3 * size_t{layers});
  for (uint32_t i = 0; i < layers; ++i) {
    const uint32_t read = made[made.size() - 1 - i], last = gradient;
    std::vector<uint32_t> inputs{gradient};
    if (read != gradient) inputs.push_back(read);
    if (i == floats) step.run(inputs, dice.cost(), dice.below(3));
    gradient = step.call(inputs, dice.cost(), dice.size(3));
    if (i == varies) {
      step.last().variants.push_back({.name = "variant",
                                      .inputs = {{last}, {made[dice.below(made.size())]}},
                                      .workspace = units(dice.below(2)),
                                      .cost = Nanos(dice.cost())});
    }
    if (i > 0 && dice.one_in(2)) step.last().may_overwrite = {last};
    if (dice.one_in(6)) step.also(dice.size(2));
  }
  return step.trace();
}

// Four to eight calls that read anything; parameters, uploads, a read by the host, writes in
// place, what is held for longer than it is used, or stays.
StepTrace tiny_step(Dice& dice) {
  TraceBuilder step;
  std::vector<uint32_t> live;
  if (dice.one_in(2)) live.push_back(step.outside(dice.size(3), dice.one_in(2)));
  const uint32_t calls = 4 + dice.below(5), upload = dice.below(4 * calls);
  for (uint32_t k = 0; k < calls; ++k) {
    if (k == upload) live.push_back(step.upload(dice.size(3)));
    std::vector<uint32_t> inputs;
    const auto read = [&](uint32_t s) {
      if (std::find(inputs.begin(), inputs.end(), s) == inputs.end()) inputs.push_back(s);
    };
    if (!live.empty() && !dice.one_in(5)) read(live.back());
    for (uint32_t i = dice.below(3); i > 0 && !live.empty(); --i) {
      read(live[dice.below(live.size())]);
    }
    if (dice.one_in(6)) {
      step.run(inputs, dice.cost(), dice.below(4));
      if (dice.one_in(2) && !inputs.empty()) step.writes(inputs.front());
      continue;
    }
    live.push_back(step.call(inputs, dice.cost(), dice.size(4)));
    if (dice.one_in(4)) step.last().workspace = units(dice.below(4));
    if (dice.one_in(8)) step.item(live.back()).may_evict = false;
    if (dice.one_in(3) && !inputs.empty()) step.last().may_overwrite = {inputs.front()};
    if (dice.one_in(6)) live.push_back(step.also(dice.size(2)));
  }
  for (uint32_t s = 0; s < step.items(); ++s) {
    if (dice.one_in(10)) step.hold(s, 1 + dice.below(calls));
    if (dice.one_in(12)) step.keep(s);
  }
  return step.trace();
}

// Three calls, one or two of which use state that lives through all steps.
StepTrace tiny_step_with_state(Dice& dice) {
  constexpr uint32_t kCalls = 3;
  TraceBuilder step;
  const uint32_t state = step.outside(dice.size(4), /*persistent=*/true);
  const uint32_t use = dice.below(kCalls), update = use + dice.below(kCalls + 1 - use);
  std::vector<uint32_t> made;
  for (uint32_t k = 0; k < kCalls; ++k) {
    std::vector<uint32_t> inputs;
    if (!made.empty()) inputs.push_back(made.back());
    if (made.size() > 1 && dice.one_in(2)) inputs.push_back(made.front());
    if (k == use || k == update) inputs.push_back(state);
    made.push_back(step.call(inputs, dice.cost(), dice.size(2)));
    if (k == update) step.writes(state);
    if (k != use && k != update) step.last().workspace = units(dice.below(5));
  }
  return step.trace();
}

// How bounds compare with optima, in nanoseconds.
struct Tally {
  static constexpr Nanos kConverged{10'000};  // of milliseconds: what linear programs leave

  // `ample`: the optimum in ample space.
  void add(Nanos bound, Nanos optimum, Nanos ample) {
    EXPECT_LE(bound, optimum);
    ++compared;
    if (optimum == ample) return;
    ++longer;
    exact += optimum - bound <= kConverged;
    share += static_cast<double>((bound - ample).count()) /
             static_cast<double>((optimum - ample).count());
  }
  // At least so many optima are longer than in ample space; of these, at least this share of
  // bounds is exact, and bounds have at least this share of what is added, on average. About
  // three quarters of what was measured.
  void expect(int some_longer, double some_exact, double mean_share) const {
    if (kSanitized) return;  // too few cases to say
    EXPECT_GE(longer, some_longer) << "of " << compared;
    EXPECT_GE(exact, some_exact * longer) << "of " << longer;
    EXPECT_GE(share, mean_share * longer) << "of " << longer;
  }

  int compared = 0, longer = 0, exact = 0;
  double share = 0;  // a sum
};

// The step with each choice of what its calls run, of which at most one has a variant.
std::vector<TinyStep> with_each_variant(const StepTrace& trace, bool any_order) {
  std::vector<TinyStep> steps{{trace, any_order}};
  std::vector<uint32_t> runs(trace.ops.size());
  for (size_t k = 0; k < runs.size(); ++k) {
    if (trace.ops[k].variants.empty()) continue;
    runs[k] = 1;
    steps.emplace_back(trace, any_order, runs);
  }
  return steps;
}

// The least that suffices, and that in which the program's order needs nothing: these two and
// some between, the largest first. `suffices`: whether anything fits.
std::vector<PlanLimits> budgets_for(const StepTrace& trace, Dice& dice, uint32_t more,
                                    PlanLimits limits,
                                    const std::function<bool(const PlanLimits&)>& suffices) {
  constexpr int64_t kUnit = testing::kRecordUnit.count();
  const int64_t ample = program_order_peak(trace).count() / kUnit;
  int64_t least = ample;
  for (const TinyStep& step : with_each_variant(trace, false)) {
    least = std::min(least, step.largest_run() / kUnit);
  }
  const auto within = [&](int64_t budget) {
    limits.space = units(budget);
    return limits;
  };
  while (least < ample && !suffices(within(least))) ++least;
  std::vector<int64_t> budgets{least, ample};
  for (uint32_t i = 0; i < more && ample > least; ++i) {
    budgets.push_back(least + dice.below(static_cast<size_t>(ample - least)));
  }
  std::sort(budgets.begin(), budgets.end(), std::greater<>());
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  std::vector<PlanLimits> all;
  for (const int64_t budget : budgets) all.push_back(within(budget));
  return all;
}

Nanos bound_of(const StepTrace& trace, const PlanLimits& limits, bool any_order) {
  if (any_order) return any_order_bound(trace, limits);
  const auto times = time_bound(trace, limits);
  EXPECT_TRUE(times) << "something fits";
  return times ? times->least : Nanos(0);
}

// `optimum`: the least time in a budget; none: nothing fits.
using Optimum = std::function<std::optional<Nanos>(const PlanLimits& limits, bool any_order)>;

void compare(const StepTrace& trace, const std::vector<PlanLimits>& budgets,
             const Optimum& optimum, Tally& in_order, Tally& in_any) {
  for (const bool any_order : {false, true}) {
    std::optional<Nanos> ample;
    for (const PlanLimits& limits : budgets) {
      SCOPED_TRACE("budget " + format_bytes(limits.space));
      const auto best = optimum(limits, any_order);
      if (!best) continue;  // it fits in another order only
      if (!ample) ample = best;
      (any_order ? in_any : in_order).add(bound_of(trace, limits, any_order), *best, *ample);
    }
  }
}

// Without a tier the optimum is a sum of runs.
TEST(Optimum, BoundsAreBelowItWithoutATier) {
  Dice dice(1);
  Tally in_order, in_any;
  PlanLimits limits;
  limits.in_bandwidth = 1e18;  // uploads take no time
  for (int i = 0; i < cases(300); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    const StepTrace trace = i % 3 == 0 ? tiny_step(dice) : tiny_tower(dice, 4);
    const auto optimum = [&](const PlanLimits& within, bool any_order) {
      std::optional<Nanos> best;
      for (TinyStep& step : with_each_variant(trace, any_order)) {
        const auto time = LeastTime(std::move(step)).within(within.space);
        if (time && (!best || *time < *best)) best = time;
      }
      return best;
    };
    const auto budgets = budgets_for(trace, dice, 1, limits, [&](const PlanLimits& within) {
      return optimum(within, true).has_value();
    });
    compare(trace, budgets, optimum, in_order, in_any);
    const auto found = plan_releases(trace, budgets.back(), {}, 1000);
    if (!found || found->schedule.shortfall > Bytes(0)) continue;
    const auto best = optimum(budgets.back(), false);
    ASSERT_TRUE(best);
    EXPECT_LE(*best, found->schedule.time) << "what tries everything finds that too";
  }
  in_order.expect(190, 0.21, 0.43);
  in_any.expect(180, 0.12, 0.35);
}

using Price = std::function<QuickestSchedule::Price(const StepTrace&, const PlanLimits&)>;

// The same with a tier, by schedules.
void compare(const StepTrace& trace, Dice& dice, const Price& price, Tally& in_order,
             Tally& in_any) {
  const auto suffices = [&](const PlanLimits& within) {
    const auto any = [](const Schedule&) { return Nanos(0); };
    const auto steps = with_each_variant(trace, true);
    return std::any_of(steps.begin(), steps.end(), [&](const TinyStep& step) {
      return QuickestSchedule(step, within, {any, nullptr}).find().has_value();
    });
  };
  const PlanLimits link = testing::copy_within(0, 200'000 * dice.size(100));
  const auto optimum = [&](const PlanLimits& limits, bool any_order) {
    std::optional<Nanos> best;
    for (TinyStep& step : with_each_variant(trace, any_order)) {
      QuickestSchedule search(std::move(step), limits, price(trace, limits));
      const auto found = search.find();
      EXPECT_TRUE(!found || search.is_complete());
      if (!found || (best && found->time >= *best)) continue;
      best = found->time;
      EXPECT_EQ(schedule_violations(trace, limits, found->schedule, 1),
                std::vector<std::string>());
    }
    return best;
  };
  compare(trace, budgets_for(trace, dice, 0, link, suffices), optimum, in_order, in_any);
}

TEST(Optimum, BoundsAreBelowItWithATier) {
  Dice dice(2);
  Tally in_order, in_any;
  for (int i = 0; i < cases(200); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    compare(
        tiny_tower(dice, 2), dice,
        [](const StepTrace& trace, const PlanLimits& limits) {
          const auto time = [&](const Schedule& s) { return simulate(trace, limits, s).time; };
          return QuickestSchedule::Price{time, time};
        },
        in_order, in_any);
  }
  in_order.expect(70, 0, 0.18);
  in_any.expect(70, 0, 0.12);
}

// Copies of state may be under way from one step to the next.
TEST(Optimum, BoundsAreBelowItWithState) {
  Dice dice(3);
  Tally in_order, in_any;
  for (int i = 0; i < cases(150); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    compare(
        tiny_step_with_state(dice), dice,
        [](const StepTrace& trace, const PlanLimits& limits) {
          const auto time = [&](const Schedule& s) {
            return testing::time_among_many(trace, limits, s);
          };
          return QuickestSchedule::Price{time, nullptr};
        },
        in_order, in_any);
  }
  in_order.expect(90, 0, 0.35);
  in_any.expect(90, 0, 0.2);
}

}  // namespace
}  // namespace tidemark::planner
