// Plans against optima by exhaustive search, and figures that are known.
#include "runtime/planner/remat/remat_planner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/core/text_file.h"
#include "runtime/planner/io/remat_json.h"
#include "runtime/planner/papers/remat/integer_bound.h"
#include "runtime/planner/remat/remat_search.h"
#include "runtime/planner/remat/remat_validator.h"
#include "tests/runtime/planner/remat/small_problems.h"

namespace tidemark::planner::remat {
namespace {

RematOptions counted(int64_t nodes, uint64_t seed = 1) {
  RematOptions options;
  options.limits.seconds = 1e6;
  options.limits.nodes = nodes;
  options.limits.seed = seed;
  return options;
}

// Node 5, the last, reads 1, which reads 0 or 2. Nothing reads 3, on which 4 rides.
TEST(RematProblem, NodesThatNothingNeedsAreKnown) {
  Problem problem;
  problem.base_time = 1;
  problem.nodes = {make_node(1, 1, {}),  make_node(1, 1, {0}), make_node(1, 1, {}),
                   make_node(1, 1, {2}), make_node(1, 1, {}),  make_node(1, 1, {1})};
  problem.nodes[1].variants.push_back(make_node(1, 1, {2}).variants[0]);
  problem.nodes[4].rider_of = 3;
  EXPECT_EQ(unneeded_nodes(problem), (std::vector<NodeId>{3, 4}));
  problem.nodes[4].required = true;
  EXPECT_TRUE(unneeded_nodes(problem).empty());
}

TEST(RematPlanner, ToyComputesOneValueTwice) {
  const RematPlan plan = plan_remat(toy(), 40, counted(20'000));
  ASSERT_TRUE(plan.found());
  EXPECT_DOUBLE_EQ(plan.schedule.time, 7);
  EXPECT_EQ(plan.schedule.peak, 40);
  EXPECT_NEAR(plan.bound, 7, 1e-6);
}

TEST(RematPlanner, ToyWithAmpleMemoryRunsEverythingOnce) {
  const RematPlan plan = plan_remat(toy(), 50, counted(20'000));
  ASSERT_TRUE(plan.found());
  EXPECT_DOUBLE_EQ(plan.schedule.time, 6);
}

TEST(RematPlanner, ToyBelowItsLeastBudgetIsProvenInfeasible) {
  const RematPlan plan = plan_remat(toy(), 39, counted(1000));
  EXPECT_FALSE(plan.found());
  EXPECT_FALSE(plan.feasible);
  const LeastBudget least = find_least_budget(toy(), counted(20'000).limits);
  EXPECT_EQ(least.found, 40);
  EXPECT_TRUE(least.proven());
}

TEST(RematPlanner, VariantsFollowTheSpaceThatIsLeft) {
  // b has a fast variant with 30 bytes of workspace and a slow one with none.
  Problem problem;
  problem.nodes = {make_node(1, 10, {}), make_node(2, 10, {0}), make_node(1, 10, {1})};
  problem.nodes[1].variants.push_back(problem.nodes[1].variants[0]);
  problem.nodes[1].variants[0].workspace = 30;
  problem.nodes[1].variants[1].time = 5;
  problem.base_time = 4;
  EXPECT_DOUBLE_EQ(plan_remat(problem, 50, counted(2000)).schedule.time, 4);
  EXPECT_DOUBLE_EQ(plan_remat(problem, 49, counted(2000)).schedule.time, 7);
  EXPECT_FALSE(plan_remat(problem, 19, counted(2000)).feasible);
}

TEST(RematPlanner, RecomputesWithASignMaskInsteadOfTheActivation) {
  // x -> relu y -> z; the backward node of relu takes dz and either y or y's one-byte mask.
  Problem problem;
  problem.nodes = {make_node(1, 1, {}),   make_node(1, 32, {0}), make_node(1, 1, {1}),
                   make_node(9, 32, {1}), make_node(1, 1, {3}),  make_node(1, 1, {1, 4})};
  problem.nodes[2].rider_of = 1;
  problem.nodes[5].variants.push_back(problem.nodes[5].variants[0]);
  problem.nodes[5].variants[1].inputs = {2, 4};
  problem.base_time = 13;
  // 64 + 2: y, z and the mask; after z, y is dropped.
  const RematPlan plan = plan_remat(problem, 65, counted(5000));
  ASSERT_TRUE(plan.found());
  EXPECT_DOUBLE_EQ(plan.schedule.time, optimum(problem, 65));
}

// For every budget: infeasible is found so, bound <= optimum <= found; nearly always optimal.
TEST(RematPlanner, SmallProblemsAgainstAllStates) {
  int compared = 0, optimal = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Problem problem = random_small(seed);
    try {
      check_problem(problem);
    } catch (const std::exception&) {
      continue;
    }
    const int64_t least = bound_budget(problem);
    EXPECT_TRUE(std::isinf(optimum(problem, least - 1))) << seed;
    for (const int64_t budget : {least, least + 1, least + 3, least + 8}) {
      const double best = optimum(problem, budget);
      const RematPlan plan = plan_remat(problem, budget, counted(6000));
      if (std::isinf(best)) {
        EXPECT_FALSE(plan.found()) << seed << " in " << budget;
        continue;
      }
      ++compared;
      EXPECT_TRUE(plan.feasible) << seed << " in " << budget;
      if (!plan.found()) continue;
      EXPECT_LE(plan.bound, best + 1e-6) << seed << " in " << budget;
      EXPECT_GE(plan.schedule.time, best - 1e-9) << seed << " in " << budget;
      if (plan.schedule.time < best + 1e-9) {
        ++optimal;
      } else {
        std::printf("seed %d budget %d: found %g, optimum %g\n", static_cast<int>(seed),
                    static_cast<int>(budget), plan.schedule.time, best);
      }
    }
  }
  EXPECT_GT(compared, 300);
  EXPECT_GE(optimal, compared * 98 / 100);
}

TEST(RematPlanner, IntegerBoundsHoldToo) {
  const IntegerBound integer = integer_bound();
  if (!integer) GTEST_SKIP() << "no solver";
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Problem problem = random_small(seed);
    const int64_t budget = bound_budget(problem) + 1;
    const double best = optimum(problem, budget);
    if (std::isinf(best)) continue;
    const Options options(problem, budget);
    BoundOptions bound;
    bound.limits.seconds = 5;
    bound.integer = integer;
    EXPECT_LE(bound_time(options, bound).time, best + 1e-6) << seed;
  }
}

// A node that holds most of the budget by itself leaves little to values that must be live or
// computed again later: the bound has to look there, although much more is live elsewhere.
TEST(RematPlanner, BoundLooksAtNodesThatLeaveLittleMemory) {
  const std::string path = TIDEMARK_INSTANCES "/remat/resnet18_32.json.gz";
  const Problem problem = parse_remat_problem(read_text_file(path), path);
  const Options options(problem, 613144627);
  BoundOptions bound;
  bound.limits = counted(15'000).limits;
  const double ratio = bound_time(options, bound).time / problem.base_time;
  EXPECT_GE(ratio, 1.15);
  EXPECT_LE(ratio, 1.2382);  // of a schedule that is known
}

TEST(RematPlanner, SameWorkGivesTheSameSchedule) {
  const std::string path = TIDEMARK_INSTANCES "/remat/resnet18_32.json.gz";
  const Problem problem = parse_remat_problem(read_text_file(path), path);
  const int64_t budget = 684617932;
  const RematPlan a = plan_remat(problem, budget, counted(3000));
  const RematPlan b = plan_remat(problem, budget, counted(3000));
  ASSERT_TRUE(a.found());
  EXPECT_EQ(a.schedule.events, b.schedule.events);
  EXPECT_EQ(a.bound, b.bound);
  const RematPlan more = plan_remat(problem, budget, counted(20'000));
  EXPECT_LE(more.schedule.time, a.schedule.time);
  EXPECT_LE(a.bound, more.schedule.time);
}

TEST(RematPlanner, StopsWhenTold) {
  const std::atomic<bool> stop = true;
  RematOptions options;
  options.limits.seconds = 1e6;
  options.limits.stop = &stop;
  plan_remat(toy(), 40, options);  // ends
}

}  // namespace
}  // namespace tidemark::planner::remat
