#include "runtime/planner/roam/roam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>

#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/graph.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/roam/layout.h"
#include "runtime/planner/validator.h"
#include "tests/runtime/planner/least_height.h"
#include "tests/runtime/planner/random_problem.h"
#include "tests/runtime/planner/training_chain.h"

namespace tidemark::planner::roam {
namespace {

using ::testing::IsEmpty;

std::vector<Ablation> variants() {
  std::vector<Ablation> all = ablations();
  all.push_back({"", "as published", [](RoamOptions&) {}});
  all.push_back({"", "tiny leaves", [](RoamOptions& o) { o.subgraphs.node_limit = 2; }});
  all.push_back({"", "no search", [](RoamOptions& o) { o.limits.nodes = 0; }});
  all.push_back({"", "no time", [](RoamOptions& o) { o.limits.seconds = 0; }});
  return all;
}

TEST(RoamTest, ValidWithoutEachIngredient) {
  for (const Ablation& variant : variants()) {
    RoamOptions options;
    variant.change(options);
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const Problem problem = random_problem(seed, {.ops = static_cast<int>(seed % 30)});
      const Plan plan = roam(problem, options);
      EXPECT_THAT(violations(problem, plan), IsEmpty()) << variant.what << ", " << seed;
    }
    for (const int steps : {1, 4}) {
      for (const bool labelled : {false, true}) {
        const Problem problem =
            training_chain({.layers = 12, .steps = steps, .labelled = labelled}).problem;
        const Plan plan = roam(problem, options);
        EXPECT_THAT(violations(problem, plan), IsEmpty()) << variant.what;
        EXPECT_EQ(plan.method, "ROAM");
      }
    }
  }
}

TEST(RoamTest, ThreadsDoNotChangeThePlan) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Problem problem = seed < 10 ? random_problem(seed, {.ops = 60})
                                      : training_chain({.layers = 20, .steps = 3}).problem;
    RoamOptions options;
    options.subgraphs.node_limit = 8;
    options.threads = 1;
    const Plan alone = roam(problem, options);
    for (const int threads : {2, 7}) {
      options.threads = threads;
      const Plan together = roam(problem, options);
      EXPECT_EQ(alone.order, together.order);
      ASSERT_EQ(alone.placements.size(), together.placements.size());
      for (size_t k = 0; k < alone.placements.size(); ++k) {
        EXPECT_EQ(alone.placements[k].offset, together.placements[k].offset);
      }
    }
  }
}

// With a single leaf, an exhaustive search is optimal.
TEST(RoamTest, OneLeafIsOptimal) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Problem problem = random_problem(seed, {.ops = 7, .in_place = false});
    int64_t least = INT64_MAX;
    for_each_order(problem, [&](const std::vector<OpId>& order) {
      least = std::min(least, peak_load(problem, order).count());
    });
    RoamOptions options;
    options.segments = false;
    EXPECT_EQ(roam(problem, options).load.count(), least) << seed;
  }
}

// Segment by segment, a chain is ordered as well as in one piece, and laid out without a gap.
TEST(RoamTest, ChainsAtTheBound) {
  for (const int layers : {2, 5, 9}) {
    const Problem problem = training_chain({.layers = layers, .weight = 5}).problem;
    const Plan plan = roam(problem);
    EXPECT_EQ(plan.load, plan_order(problem).load) << layers;
    EXPECT_EQ(plan.peak, plan.load) << layers;
  }
}

TEST(RoamTest, LeavesGoToTheSolverThatIsGiven) {
  const Problem problem = training_chain({.layers = 6}).problem;
  std::atomic<int> orders{0}, layouts{0};
  RoamOptions options;
  const LeafSolvers own = exact_leaves();
  options.leaves.order = [&](const Problem& leaf, const Limits& limits) {
    ++orders;
    check_problem(leaf);
    return own.order(leaf, limits);
  };
  options.leaves.layout = [&](const LayoutLeaf& leaf, const Limits& limits) {
    ++layouts;
    return own.layout(leaf, limits);
  };
  EXPECT_THAT(violations(problem, roam(problem, options)), IsEmpty());
  EXPECT_GT(orders, 1);
  EXPECT_GT(layouts, 1);
  options.leaves.order = [](const Problem& leaf, const Limits&) {
    return std::vector<OpId>(leaf.op_count(), 0);
  };
  EXPECT_THROW(roam(problem, options), std::logic_error);
}

// Time that early leaves do not use goes to later ones.
TEST(RoamTest, LeavesDivideTheTimeLeft) {
  const Problem problem = training_chain({.layers = 6, .steps = 2}).problem;
  const double hours = 1e9;
  std::vector<double> orders, layouts;
  RoamOptions options;
  options.threads = 1;
  options.limits.seconds = 2 * hours;
  options.subgraphs.updates = false;  // a leaf per layer
  options.divide_time = true;
  options.leaves.order = [&](const Problem& leaf, const Limits& limits) {
    orders.push_back(limits.seconds / hours);
    return program_order(leaf);
  };
  options.leaves.layout = [&](const LayoutLeaf& leaf, const Limits& limits) {
    layouts.push_back(limits.seconds / hours);
    return stacked(leaf);
  };
  roam(problem, options);
  ASSERT_GT(orders.size(), 2U);
  ASSERT_GT(layouts.size(), 2U);
  const auto n = static_cast<double>(orders.size()), m = static_cast<double>(layouts.size());
  for (size_t k = 0; k < orders.size(); ++k) {
    EXPECT_NEAR(orders[k], 1 / (n - static_cast<double>(k)), 1e-6) << k;
  }
  for (size_t k = 0; k < layouts.size(); ++k) {
    EXPECT_NEAR(layouts[k], 2 / (m - static_cast<double>(k)), 1e-6) << k;
  }
}

TEST(LeafSolverTest, LayoutsUnderCeilingsAsLowAsTryingEverything) {
  expect_least_heights(exact_leaves(), {.nodes = 100'000});
}

//   inner leaf       |--- g ---|      a gradient that waits, made above the outer activation
//   outer leaf  |-- a --|    |t1|     a: its activation; t1, t2: an update's temporaries, which
//               0  3    6    7  9     are placed from 0 on and meet g
TEST(ConcatenationTest, SettlesConflictsWithoutAGap) {
  const std::vector<Buffer> buffers = {
      {0, 6, Bytes(1)}, {3, 9, Bytes(4)}, {7, 9, Bytes(4)}, {7, 8, Bytes(4)}};
  Timeline timeline;
  timeline.leaf = {1, 0, 0, 0, 1, 1, 1, 1, 1};
  timeline.is_forward = {true, true, false, false, false, false, false, false, false};
  timeline.leaves = 2;
  // Nothing lives throughout: g ends before the last position.
  timeline.leaf.push_back(1);
  timeline.is_forward.push_back(false);
  ConcatenationOptions options;
  options.limits.nodes = 1000;
  const Offsets offsets = lay_out(buffers, timeline, exact_leaves().layout, options);
  EXPECT_THAT(layout_violations(buffers, offsets, max_load(buffers)), IsEmpty());
}

// Timesteps for `leaf`: each operator as early as it can run.
std::vector<int> as_early_as_possible(const Problem& leaf) {
  const OrderGraph graph(leaf);
  std::vector<int> steps(graph.size(), 0);
  for (const OpId op : program_order(leaf)) {
    for (const OpId before : graph.ops[op].before) {
      steps[op] = std::max(steps[op], steps[before] + 1);
    }
  }
  return steps;
}

TEST(RoamTest, OperatorsOfATimestepMayRunAtTheSameTime) {
  RoamOptions options;
  options.leaves.timesteps = [](const Problem& leaf, const Limits&) {
    return as_early_as_possible(leaf);
  };
  int side_by_side = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    const Problem problem =
        seed < 60 ? random_problem(seed, {.ops = static_cast<int>(seed % 30)})
                  : training_chain({.layers = static_cast<int>(seed % 7), .steps = 2}).problem;
    TimestepPlan result = roam_in_timesteps(problem, options);
    EXPECT_THAT(violations(problem, result.plan), IsEmpty()) << seed;
    result.plan.freedom = Freedom::kOperators;
    const Problem barriers = with_barriers(problem, result.timesteps);
    check_problem(barriers);
    EXPECT_THAT(violations(barriers, result.plan), IsEmpty()) << seed;
    for (size_t t = 1; t < result.plan.order.size(); ++t) {
      const int step = result.timesteps[result.plan.order[t]];
      const int before = result.timesteps[result.plan.order[t - 1]];
      EXPECT_TRUE(step == before || step == before + 1) << seed;
      side_by_side += step == before ? 1 : 0;
    }
    EXPECT_EQ(roam(problem, options).peak, result.plan.peak);
  }
  EXPECT_GT(side_by_side, 0);
  options.leaves.timesteps = [](const Problem& leaf, const Limits&) {
    return std::vector<int>(leaf.op_count(), static_cast<int>(leaf.op_count()));
  };
  EXPECT_THROW(roam(training_chain({}).problem, options), std::logic_error);
}

}  // namespace
}  // namespace tidemark::planner::roam
