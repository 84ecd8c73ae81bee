// MONeT's program against enumeration of its own decisions and the optimum in any order; what
// its rows are for.
#include "runtime/planner/papers/remat/monet_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/errors.h"
#include "runtime/planner/papers/remat/remat_methods.h"
#include "runtime/planner/papers/remat/solved_program.h"
#include "tests/runtime/planner/papers/solvers.h"
#include "tests/runtime/planner/papers/training_problems.h"
#include "tests/support/sanitized.h"
#include "tests/support/usage_error.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::HasSubstr;
using ::tidemark::testing::usage_error;

RematResult solved_by_monet(const Problem& problem, int64_t budget,
                            const MonetOptions& options = {},
                            const TwoPassOptions& reading = {}) {
  const TwoPass passes = read_two_pass(problem, reading);
  const MonetProgram program(passes, budget, options);
  return solve_and_decode(
      problem, program.program(),
      [&](const std::vector<double>& values) { return program.decode(values); }, {},
      Stopwatch(60));
}

// At each budget from what keeps everything down to the first that does not fit.
void compare_with_enumeration(const Problem& problem, bool and_any_order,
                              const MonetOptions& options = {}) {
  const TwoPass passes = read_two_pass(problem);
  for (int64_t budget = keep_all(problem);; --budget) {
    SCOPED_TRACE("budget " + std::to_string(budget));
    const double least = MonetByEnumeration(passes, budget).least_time();
    const RematResult result = solved_by_monet(problem, budget, options);
    if (and_any_order) {
      EXPECT_LE(optimum(problem, budget), least + 1e-9);
    }
    if (least == std::numeric_limits<double>::infinity()) {
      EXPECT_EQ(result.status, SolveStatus::kInfeasible) << result.note;
      EXPECT_FALSE(result.found());
      return;
    }
    ASSERT_TRUE(result.fits(budget)) << result.note << ", peak " << result.schedule.peak;
    EXPECT_EQ(result.status, SolveStatus::kOptimal);
    EXPECT_NEAR(result.schedule.time, least, 1e-6);
    EXPECT_LE(result.own_bound, least + 1e-6);
    EXPECT_GT(result.own_bound, least * (1 - 1e-3));
  }
}

TEST(Monet, EqualsEnumeration) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (uint64_t seed = 0; seed < (tidemark::testing::kSanitized ? 2 : 12); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare_with_enumeration(random_training(seed, 3 + static_cast<int>(seed % 2), {}),
                             seed % 2 == 0);
  }
}

TEST(Monet, EqualsEnumerationOnLongerChains) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare_with_enumeration(random_training(seed, 5, plain()), false);
  }
}

TEST(Monet, EqualsEnumerationWithSumsAsVariables) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (uint64_t seed = 20; seed < (tidemark::testing::kSanitized ? 21 : 24); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare_with_enumeration(random_training(seed, 4, {}), false, {.most_direct_terms = 0});
  }
}

// Each feature alone, so that a row that one of them needs cannot hide behind another.
TEST(Monet, EqualsEnumerationWithEachFeature) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  using Features = TrainingFeatures;
  const Features features[] = {
      only({&Features::skips, &Features::workspace}),
      only({&Features::skips, &Features::in_place, &Features::choices}),
      only({&Features::sign_bits, &Features::choices}),
      only({&Features::skips, &Features::sign_bits, &Features::later_runs})};
  for (size_t f = 0; f < std::size(features); ++f) {
    for (uint64_t seed = 50; seed < (tidemark::testing::kSanitized ? 51 : 53); ++seed) {
      SCOPED_TRACE("features " + std::to_string(f) + ", seed " + std::to_string(seed));
      compare_with_enumeration(random_training(seed, 4, features[f]), false);
    }
  }
}

TEST(Monet, SolvesTheToy) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  EXPECT_EQ(solved_by_monet(toy(), 50).schedule.time, 6);
  // In any order 40 bytes take 7: a is dropped, and runs again once dc has read b and c. (3)
  // still counts b and c there, because they were stored during the stage before.
  EXPECT_EQ(optimum(toy(), 40), 7);
  const RematResult result = solved_by_monet(toy(), 40);
  ASSERT_TRUE(result.fits(40)) << result.note;
  EXPECT_EQ(result.schedule.time, 8);
}

// a(1) -> b(1) | loss'(b), a'(a); b has workspace 5 or takes 2 longer.
Problem with_workspace() {
  Problem problem;
  problem.base_time = 4;
  problem.nodes = {make_node(1, 1, {}), make_node(1, 1, {0}), make_node(1, 1, {1}),
                   make_node(1, 1, {0, 2})};
  Variant slow = problem.nodes[1].variants[0];
  problem.nodes[1].variants[0].workspace = 5;
  slow.time = 3;
  problem.nodes[1].variants.push_back(slow);
  return problem;
}

TEST(Monet, CountsWorkspace) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  EXPECT_EQ(solved_by_monet(with_workspace(), 7).schedule.time, 4);
  const RematResult slow = solved_by_monet(with_workspace(), 4);
  ASSERT_TRUE(slow.fits(4));
  EXPECT_EQ(slow.schedule.time, 6);
  // Without the workspaces in (1) to (6), the program's schedule does not fit.
  const RematResult blind = solved_by_monet(with_workspace(), 4, {.workspace = false});
  ASSERT_TRUE(blind.found());
  EXPECT_EQ(blind.schedule.time, 4);
  EXPECT_EQ(blind.schedule.peak, 7);
  // Without a choice of implementations there is no other way.
  EXPECT_EQ(solved_by_monet(with_workspace(), 4, {}, {.select_operators = false}).status,
            SolveStatus::kInfeasible);
}

// a -> b -> c | g(c), gb(a, b, g). b is faster in place, over a, but gb reads both. g's
// workspace makes both run again: in the forward pass b runs in place (1), before gb it does
// not (3).
TEST(Monet, KeepsWhatARunInPlaceWouldOverwrite) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  Problem problem;
  problem.base_time = 7;
  problem.nodes = {make_node(1, 4, {}), make_node(3, 4, {0}), make_node(1, 1, {1}),
                   make_node(1, 1, {2}), make_node(1, 0, {0, 1, 3})};
  problem.nodes[1].variants.push_back(problem.nodes[1].variants[0]);
  problem.nodes[1].variants[1].time = 1;
  problem.nodes[1].variants[1].overwrites = 0;
  problem.nodes[3].variants[0].workspace = 8;
  const RematResult result = solved_by_monet(problem, 10);
  ASSERT_TRUE(result.fits(10)) << result.note;
  EXPECT_EQ(result.schedule.time, 1 + 1 + 1 + 1 + (1 + 3) + 1);
  // In any order a can run twice around b in place, which one stage cannot say.
  EXPECT_EQ(optimum(problem, 10), 8);
}

// (13) is implied where no workspace is negative.
TEST(Monet, NeedsNoStoredRows) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  const TrainingFeatures features{.in_place = false};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Problem problem = random_training(seed, 4, features);
    for (int64_t budget = keep_all(problem); budget > keep_all(problem) - 4; --budget) {
      const RematResult with = solved_by_monet(problem, budget, {.stored_rows = true});
      const RematResult without = solved_by_monet(problem, budget);
      EXPECT_EQ(with.found(), without.found()) << "seed " << seed << ", budget " << budget;
      EXPECT_EQ(with.schedule.time, without.schedule.time);
      EXPECT_GT(with.rows, without.rows);
    }
  }
}

// a, b -> c(b) -> d(a, c) -> e(d) | g(d, e), gc(c, g), gb(b, gc). Room for g is made by
// dropping c. When c runs again, appendix B's first bound counts a, which only d reads.
TEST(Monet, FirstLocalBoundIsLooser) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  Problem problem;
  problem.base_time = 8;
  problem.nodes = {make_node(1, 10, {}),    make_node(1, 1, {}),    make_node(1, 5, {1}),
                   make_node(1, 1, {0, 2}), make_node(1, 1, {3}),   make_node(1, 8, {3, 4}),
                   make_node(1, 0, {2, 5}), make_node(1, 0, {1, 6})};
  problem.nodes[5].variants[0].workspace = 6;
  const RematResult tight = solved_by_monet(problem, 18);
  ASSERT_TRUE(tight.fits(18)) << tight.note;
  EXPECT_EQ(tight.schedule.time, 9);
  EXPECT_EQ(solved_by_monet(problem, 18, {.tight_local = false}).status,
            SolveStatus::kInfeasible);
}

TEST(Monet, SaysSoWhenItsProgramIsTooLarge) {
  const TwoPass passes = read_two_pass(toy());
  EXPECT_THAT(usage_error([&] { MonetProgram(passes, 40, {.most_terms = 10}); }),
              HasSubstr("million terms"));
}

}  // namespace
}  // namespace tidemark::planner::remat
