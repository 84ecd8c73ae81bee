#include "runtime/planner/bounds/linear_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace tidemark::planner {
namespace {

using Terms = std::vector<LinearProgram::Term>;

LinearBound solved(const LinearProgram& program, int64_t iterations = 2000) {
  Limits limits;
  limits.seconds = 1e6;
  limits.nodes = iterations;
  return best_bound(program, limits);
}

// Least x + 2 y with x + y >= 1, x <= 0.25.
TEST(LinearProgram, ReachesTheOptimumOfASmallOne) {
  LinearProgram program;
  const auto x = program.variable(0.25, 1.0), y = program.variable(1.0, 2.0);
  program.at_most(Terms{{x, -1.0}, {y, -1.0}}, -1.0);
  const LinearBound found = solved(program);
  EXPECT_NEAR(found.bound, 1.75, 1e-5);
  EXPECT_LE(found.bound, 1.75);
  EXPECT_TRUE(found.converged);
  EXPECT_LE(solved(program, 40).bound, 1.75);
}

TEST(LinearProgram, AnyDualsGiveABound) {
  LinearProgram program;
  const auto x = program.variable(0.25, 1.0), y = program.variable(1.0, 2.0);
  program.at_most(Terms{{x, -1.0}, {y, -1.0}}, -1.0);
  EXPECT_EQ(program.bound({0.0}), 0.0);
  EXPECT_NEAR(program.bound({1.0}), 1.0, 1e-9);
  EXPECT_NEAR(program.bound({2.0}), 1.75, 1e-9);
  EXPECT_NEAR(program.bound({5.0}), 5.0 - 4.0 * 0.25 - 3.0, 1e-9);
}

TEST(LinearProgram, NegativePricesTakeTheUpperEnd) {
  LinearProgram program;
  program.variable(2.0, -4.0);
  program.variable(1.0, 1.0);
  EXPECT_NEAR(solved(program).bound, -8.0, 1e-9);
}

TEST(LinearProgram, EndsWhereTheBoundIsEnough) {
  LinearProgram program;
  const auto x = program.variable(1.0, 2.0), y = program.variable(1.0, 3.0);
  program.at_most(Terms{{x, -1.0}, {y, -1.0}}, -1.5);
  Limits limits;
  limits.seconds = 1e6;
  const LinearBound found = best_bound(program, limits, 3.0);
  EXPECT_GE(found.bound, 3.0);
  EXPECT_FALSE(found.converged);
}

// Waiting w costs 1 and moves 2 of the 3 that must move; x moves 1 for nothing.
TEST(LinearProgram, UnboundedVariablesLimitTheirRowsDuals) {
  LinearProgram program;
  const auto w = program.variable(LinearProgram::kUnbounded, 1.0);
  const auto x = program.variable(1.0, 0.0);
  program.at_most(Terms{{w, -2.0}, {x, -1.0}}, -3.0);
  EXPECT_NEAR(program.bound({0.25}), 0.75 - 0.25, 1e-9);
  EXPECT_NEAR(program.bound({0.5}), 1.0, 1e-9);
  EXPECT_NEAR(program.bound({100.0}), 1.0, 1e-9);
  EXPECT_NEAR(solved(program).bound, 1.0, 1e-4);
}

// No point that satisfies the rows costs less than the bound.
TEST(LinearProgram, IsBelowEveryFeasiblePoint) {
  std::mt19937 random(1);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  int bounded = 0;
  for (int seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const size_t n = 2 + random() % 6, m = 1 + random() % 6;
    LinearProgram program;
    std::vector<double> point(n), price(n);
    for (size_t v = 0; v < n; ++v) {
      point[v] = uniform(0, 1);
      program.variable(1.0, price[v] = uniform(0, 1));
    }
    for (size_t r = 0; r < m; ++r) {
      Terms row;
      double value = 0;
      for (uint32_t v = 0; v < n; ++v) {
        row.push_back({v, uniform(-1, 0.3)});
        value += row.back().coefficient * point[v];
      }
      program.at_most(row, value + uniform(0, 0.1));
    }
    double cost = 0;
    for (size_t v = 0; v < n; ++v) cost += price[v] * point[v];
    const double bound = solved(program).bound;
    EXPECT_LE(bound, cost + 1e-9);
    bounded += bound > 0.5 * cost;
  }
  EXPECT_GE(bounded, 50);
}

TEST(LinearProgram, RepeatsToTheBitAndStops) {
  LinearProgram program;
  const auto x = program.variable(0.25, 1.0), y = program.variable(1.0, 2.0);
  program.at_most(Terms{{x, -1.0}, {y, -1.0}}, -1.0);
  EXPECT_EQ(solved(program, 200).bound, solved(program, 200).bound);
  const std::atomic<bool> stop = true;
  Limits limits;
  limits.stop = &stop;
  EXPECT_EQ(best_bound(program, limits).bound, 0.0);
}

}  // namespace
}  // namespace tidemark::planner
