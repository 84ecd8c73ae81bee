// Bounds of linear programs whose optima are known.
#include "runtime/planner/remat/box_program.h"

#include <gtest/gtest.h>

namespace tidemark::planner::remat {
namespace {

Limits iterations(int64_t count) {
  Limits limits;
  limits.seconds = 1e6;
  limits.nodes = count;
  return limits;
}

// minimise 2 a + 3 b, a + b >= 1.5: a = 1, b = 0.5.
BoxProgram two() {
  BoxProgram program;
  const int32_t a = program.add_variable(2), b = program.add_variable(3);
  program.add_row({{a, -1}, {b, -1}}, -1.5);
  return program;
}

TEST(BoxProgram, ReachesTheOptimumFromBelow) {
  const BoxBound bound = lower_bound(two(), iterations(20'000), 1e9);
  EXPECT_LE(bound.bound, 3.5 + 1e-9);
  EXPECT_NEAR(bound.bound, 3.5, 1e-4);
  EXPECT_TRUE(bound.converged);
}

TEST(BoxProgram, FewIterationsStillBound) {
  EXPECT_LE(lower_bound(two(), iterations(40), 1e9).bound, 3.5 + 1e-9);
}

TEST(BoxProgram, ConstantsAndNegativeCostsCount) {
  BoxProgram program;
  program.constant = 10;
  program.add_variable(-4);
  program.add_variable(1);
  EXPECT_NEAR(lower_bound(program, iterations(400), 1e9).bound, 6, 1e-9);
}

TEST(BoxProgram, StopsWhereTheBoundIsEnough) {
  EXPECT_LT(lower_bound(two(), iterations(1'000'000), 3).iterations, 1'000'000);
}

}  // namespace
}  // namespace tidemark::planner::remat
