// Every method gives valid plans, orders and layouts, with bounds that hold.
#include "runtime/planner/papers/methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/core/errors.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/papers/solver/solver.h"
#include "runtime/planner/validator.h"
#include "tests/runtime/planner/papers/method_names.h"
#include "tests/runtime/planner/random_problem.h"
#include "tests/support/environment.h"
#include "tests/support/usage_error.h"

namespace tidemark::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Methods, HaveNamesThatAreFlags) {
  expect_names_that_are_flags(methods(), find_method);
  for (const Method& method : methods()) EXPECT_TRUE(method.plan) << method.name;
}

TEST(Methods, MakeValidPlans) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const Problem problem = random_problem(seed, {.ops = 6});
    for (const Method& method : methods()) {
      if (method.needs_solver && find_solvers().empty()) continue;
      SCOPED_TRACE(method.name + ", seed " + std::to_string(seed));
      const Plan plan = method.plan(problem, {});
      EXPECT_THAT(violations(problem, plan), IsEmpty());
      EXPECT_GE(plan.bound, load_bound(problem));
      if (method.order) {
        const Order order = method.order(problem, {});
        EXPECT_EQ(order.load, peak_load(problem, order.order));
        EXPECT_LE(order.bound, order.load);
      }
      if (method.layout) {
        const auto buffers = to_blocks(plan.placements, plan.in_place).buffers;
        const Layout layout = method.layout(buffers, {});
        EXPECT_THAT(layout_violations(buffers, layout.offsets, layout.height), IsEmpty());
        EXPECT_LE(layout.bound, layout.height);
      }
    }
  }
}

// OLLA's own method has neither our start nor our bounds: out of time, it has nothing, where
// ours still has LESCEA's order and a greedy layout.
TEST(Methods, OllaPublishedHasNoStartOfOurs) {
  if (find_solvers().empty()) GTEST_SKIP() << "this system has no solver";
  const Problem problem = random_problem(3, {.ops = 60});
  MethodOptions none;
  none.limits.seconds = 0;
  EXPECT_THAT(violations(problem, find_method("olla")->plan(problem, none)), IsEmpty());
  const Method& published = *find_method("olla-published");
  EXPECT_THAT(tidemark::testing::message_of<Error>([&] { published.plan(problem, none); }),
              HasSubstr("[olla] the solver found no order within 0.0 s, half of the deadline"));
  OrderOptions no_order;
  no_order.limits.seconds = 0;
  EXPECT_THROW(published.order(problem, no_order), Error);
  LayoutOptions no_places;
  no_places.limits.seconds = 0;
  EXPECT_THAT(tidemark::testing::message_of<Error>([&] {
                published.layout({{0, 2, Bytes(2)}, {1, 3, Bytes(3)}}, no_places);
              }),
              HasSubstr("[olla] the solver found no places within 0.0 s"));
}

TEST(Methods, SayWhatToInstallWithoutASolver) {
  const tidemark::testing::EnvironmentVariable no_highs("TIDEMARK_HIGHS", ""),
      no_cbc("TIDEMARK_CBC", "");
  for (const Method& method : methods()) {
    if (!method.needs_solver) continue;
    SCOPED_TRACE(method.name);
    try {
      (void)method.plan(random_problem(0, {.ops = 6}), {});
      ADD_FAILURE() << "planned without a solver";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("apt-get install coinor-cbc"));
    }
  }
}

}  // namespace
}  // namespace tidemark::planner
