// Checkmate's program against enumeration of R and S with the products of (5), and the optimum
// in any order.
#include "runtime/planner/papers/remat/checkmate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runtime/planner/papers/remat/solved_program.h"
#include "tests/runtime/planner/papers/solvers.h"
#include "tests/runtime/planner/papers/training_problems.h"
#include "tests/support/usage_error.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::HasSubstr;
using ::tidemark::testing::usage_error;

RematResult solved_by_checkmate(const Problem& problem, int64_t budget,
                                const CheckmateOptions& options = {}) {
  const CheckmateProgram program(problem, budget, options);
  return solve_and_decode(
      problem, program.program(),
      [&](const std::vector<double>& values) { return program.decode(values); }, {},
      Stopwatch(60));
}

// Of nodes with one variant each: the least time over R and S, stage by stage.
double by_enumeration(const Problem& problem, int64_t budget) {
  const int n = problem.size();
  const auto has = [](uint32_t set, int i) { return (set >> i & 1) != 0; };
  const auto inputs = [&](int k) -> const std::vector<NodeId>& {
    return problem.nodes[k].variants[0].inputs;
  };
  // U[t,k] + workspace <= budget for all k, with R, S[t] and S[t+1] as sets.
  const auto fits = [&](uint32_t runs, uint32_t kept, uint32_t next) {
    int64_t used = problem.fixed_bytes;
    for (int i = 0; i < n; ++i) used += has(kept, i) ? problem.nodes[i].bytes : 0;
    for (int k = 0; k < n; ++k) {
      if (!has(runs, k)) continue;
      used += problem.nodes[k].bytes;
      if (used + problem.nodes[k].variants[0].workspace > budget) return false;
      const auto is_freed = [&](int i) {
        if (has(next, i)) return false;
        for (int j = k + 1; j < n; ++j) {
          if (has(runs, j) && std::count(inputs(j).begin(), inputs(j).end(), i) > 0)
            return false;
        }
        return true;
      };
      if (is_freed(k)) used -= problem.nodes[k].bytes;
      for (const NodeId i : inputs(k)) used -= is_freed(i) ? problem.nodes[i].bytes : 0;
    }
    return true;
  };
  std::map<uint32_t, double> least{{0, 0.0}};
  for (int t = 0; t < n; ++t) {
    std::map<uint32_t, double> after;
    for (const auto& [kept, time] : least) {
      for (uint32_t earlier = 0; earlier < 1U << t; ++earlier) {
        const uint32_t runs = earlier | 1U << t;
        double total = time;
        bool possible = true;
        for (int k = 0; k <= t; ++k) {
          if (!has(runs, k)) continue;
          total += problem.nodes[k].variants[0].time;
          for (const NodeId i : inputs(k)) possible = possible && has(runs | kept, i);
        }
        for (uint32_t next = 0; possible && next < 2U << t; ++next) {
          if ((next & ~(runs | kept)) != 0 || !fits(runs, kept, next)) continue;
          const auto [at, is_new] = after.emplace(next, total);
          if (!is_new) at->second = std::min(at->second, total);
        }
      }
    }
    least = std::move(after);
  }
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [kept, time] : least) best = std::min(best, time);
  return best;
}

TEST(Checkmate, EqualsEnumeration) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Problem problem = random_training(seed, 3 + static_cast<int>(seed % 2), plain());
    problem.nodes[1].variants[0].workspace = static_cast<int64_t>(seed % 3);
    for (int64_t budget = keep_all(problem);; --budget) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", budget " + std::to_string(budget));
      const double least = by_enumeration(problem, budget);
      const RematResult result = solved_by_checkmate(problem, budget);
      EXPECT_LE(optimum(problem, budget), least + 1e-9);
      if (least == std::numeric_limits<double>::infinity()) {
        EXPECT_EQ(result.status, SolveStatus::kInfeasible) << result.note;
        break;
      }
      ASSERT_TRUE(result.fits(budget)) << result.note << ", peak " << result.schedule.peak;
      EXPECT_EQ(result.status, SolveStatus::kOptimal);
      EXPECT_NEAR(result.schedule.time, least, 1e-6);
    }
  }
}

// The schedule of the toy in 40 bytes computes a again behind dc.
TEST(Checkmate, RunsNothingAfterWhatComesAfterAllItsRuns) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  Problem problem = toy();
  problem.nodes[3].after = {0};
  EXPECT_EQ(solved_by_checkmate(problem, 50).schedule.time, 6);
  EXPECT_TRUE(std::isinf(optimum(problem, 40)));
  EXPECT_EQ(solved_by_checkmate(problem, 40).status, SolveStatus::kInfeasible);
}

TEST(Checkmate, SolvesTheToy) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  EXPECT_EQ(solved_by_checkmate(toy(), 50).schedule.time, 6);
  EXPECT_EQ(solved_by_checkmate(toy(), 40).schedule.time, 7);
}

// As published, workspaces are not counted: the schedule may not fit.
TEST(Checkmate, AsPublishedOverlooksWorkspace) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  Problem problem = toy();
  problem.nodes[1].variants[0].workspace = 15;
  const RematResult published = solved_by_checkmate(problem, 40, {.workspace = false});
  ASSERT_TRUE(published.found());
  EXPECT_EQ(published.schedule.peak, 45);
  EXPECT_EQ(solved_by_checkmate(problem, 40).status, SolveStatus::kInfeasible);
}

// Nodes that may run once only do; a later run may have another variant.
TEST(Checkmate, KnowsKindsOfRuns) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  Problem cheaper = toy();
  Variant again = cheaper.nodes[0].variants[0];
  again.time = 0.25;
  again.when = When::kAgain;
  cheaper.nodes[0].variants[0].when = When::kFirst;
  cheaper.nodes[0].variants.push_back(again);
  EXPECT_EQ(solved_by_checkmate(cheaper, 40).schedule.time, 6.25);
  Problem once = toy();
  once.nodes[0].once = true;
  EXPECT_EQ(solved_by_checkmate(once, 40).status, SolveStatus::kInfeasible);
}

TEST(Checkmate, RejectsWhatItsProgramCannotSay) {
  Problem in_place = toy();
  in_place.nodes[2].variants[0].overwrites = 1;
  EXPECT_THAT(usage_error([&] { CheckmateProgram(in_place, 40, {}); }),
              HasSubstr("no variant that Checkmate knows"));
  Problem rider = toy();
  rider.nodes[1].rider_of = 0;
  EXPECT_THAT(usage_error([&] { CheckmateProgram(rider, 40, {}); }), HasSubstr("knows"));
  EXPECT_THAT(usage_error([&] { CheckmateProgram(toy(), 40, {.most_terms = 10}); }),
              HasSubstr("million terms"));
}

}  // namespace
}  // namespace tidemark::planner::remat
