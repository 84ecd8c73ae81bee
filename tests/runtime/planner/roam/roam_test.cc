#include "runtime/planner/roam/roam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>

#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/validator.h"
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

// The least height over all orders of placing. Buffers with a ceiling either fit below it first
// or not at all.
int64_t least_height(const LayoutLeaf& leaf) {
  std::vector<size_t> order(leaf.buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t least = INT64_MAX;
  do {
    Offsets offsets(order.size());
    std::vector<bool> placed(order.size(), false);
    place_around(leaf.buffers, order, placed, offsets);
    bool below = true;
    for (const size_t i : order) {
      below = below && offsets[i] + leaf.buffers[i].size <= Offset() + leaf.ceilings[i];
    }
    if (below) least = std::min(least, height(leaf.buffers, offsets).count());
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(LeafSolverTest, LayoutsUnderCeilingsAsLowAsTryingEverything) {
  std::mt19937 random(7);
  const LeafSolvers solvers = exact_leaves();
  int lifted = 0;
  for (int round = 0; round < 300; ++round) {
    LayoutLeaf leaf;
    Bytes stacked;
    const size_t count = 3 + random() % 4;
    for (size_t i = 0; i < count; ++i) {
      const auto begin = static_cast<int64_t>(random() % 6);
      const bool low = i < count / 2;
      // Buffers below all live in the middle.
      leaf.buffers.push_back(
          {low ? begin % 3 : begin,
           low ? 4 + begin % 3 : begin + 1 + static_cast<int64_t>(random() % 4),
           Bytes(1 + static_cast<int64_t>(random() % 6))});
      if (low) stacked += leaf.buffers.back().size;
    }
    for (size_t i = 0; i < count; ++i) {
      leaf.ceilings.push_back(i < count / 2 ? stacked : Bytes(INT64_MAX));
    }
    const Offsets offsets = solvers.layout(leaf, {.nodes = 100'000});
    const Bytes top = height(leaf.buffers, offsets);
    EXPECT_THAT(layout_violations(leaf.buffers, offsets, top), IsEmpty()) << round;
    for (size_t i = 0; i < count; ++i) {
      EXPECT_LE(offsets[i] + leaf.buffers[i].size, Offset() + leaf.ceilings[i]) << round;
    }
    EXPECT_EQ(top.count(), least_height(leaf)) << round;
    lifted += top > max_load(leaf.buffers) ? 1 : 0;
  }
  EXPECT_GT(lifted, 0);
}

}  // namespace
}  // namespace tidemark::planner::roam
