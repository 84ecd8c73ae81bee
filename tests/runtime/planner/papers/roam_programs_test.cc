// ROAM's leaves by integer programs, against trying everything.
#include "runtime/planner/papers/roam_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/graph.h"
#include "runtime/planner/roam/roam.h"
#include "runtime/planner/validator.h"
#include "tests/runtime/planner/least_height.h"
#include "tests/runtime/planner/papers/solvers.h"
#include "tests/runtime/planner/problem_builder.h"
#include "tests/runtime/planner/random_problem.h"
#include "tests/runtime/planner/training_chain.h"

namespace tidemark::planner::roam {
namespace {

using ::testing::IsEmpty;

TEST(RoamPrograms, OrderALeafAsWellAsTryingEverything) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  const LeafSolvers leaves = program_leaves(Streams::kOne, require_solver());
  for (uint64_t seed = 0; seed < 25; ++seed) {
    const Problem problem = random_problem(seed, {.ops = 7, .in_place = false});
    int64_t least = INT64_MAX;
    for_each_order(problem, [&](const std::vector<OpId>& order) {
      least = std::min(least, peak_load(problem, order).count());
    });
    EXPECT_EQ(peak_load(problem, leaves.order(problem, {})).count(), least) << seed;
  }
}

TEST(RoamPrograms, LayALeafOutAsLowAsTryingEverything) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  expect_least_heights(program_leaves(Streams::kOne, require_solver()), {});
}

// The load of these timesteps.
int64_t load_of(const Problem& problem, const std::vector<int>& timesteps) {
  RoamOptions options;
  options.segments = false;
  options.limits.nodes = 0;
  options.leaves.timesteps = [&](const Problem&, const Limits&) { return timesteps; };
  return roam_in_timesteps(problem, options).plan.load.count();
}

// The least load over all ways to run operators in as many timesteps as the longest path has.
int64_t least_load(const Problem& problem) {
  const OrderGraph graph(problem);
  int depth = 0;
  std::vector<int> level(graph.size(), 1);
  for (size_t i = 0; i < graph.size(); ++i) {
    for (const OpId before : graph.ops[i].before) {
      level[i] = std::max(level[i], level[before] + 1);
    }
    depth = std::max(depth, level[i]);
  }
  int64_t least = INT64_MAX;
  std::vector<int> steps(graph.size(), 0);
  const auto walk = [&](const auto& self, size_t i) -> void {
    if (i == graph.size()) {
      least = std::min(least, load_of(problem, steps));
      return;
    }
    int first = 0;
    for (const OpId before : graph.ops[i].before) first = std::max(first, steps[before] + 1);
    for (steps[i] = first; steps[i] < depth; ++steps[i]) self(self, i + 1);
  };
  walk(walk, 0);
  return least;
}

TEST(RoamPrograms, RunOperatorsSideBySideAsWellAsTryingEverything) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  const LeafSolvers leaves = program_leaves(Streams::kSeveral, require_solver());
  for (uint64_t seed = 0; seed < 25; ++seed) {
    const Problem problem = random_problem(seed, {.ops = 5, .in_place = false});
    EXPECT_EQ(load_of(problem, leaves.timesteps(problem, {})), least_load(problem)) << seed;
  }
}

// The program of a leaf of some thousand operators takes gigabytes, so its size is known before
// it is made. A solver that does not exist shows that none is called.
TEST(RoamPrograms, OfALargeLeafAreNotWritten) {
  // A chain, and as many operators that may run at any time before its end.
  constexpr int kLength = 1000;
  Problem problem;
  StorageId last = kNone;
  for (int i = 0; i < kLength; ++i) {
    const StorageId next = add_storage(problem, "x", 1), side = add_storage(problem, "y", 2);
    add_operator(problem, "chain", last == kNone ? std::vector<StorageId>() : std::vector{last},
                 {next});
    add_operator(problem, "side", {}, {side});
    last = next;
  }
  for (StorageId side = 1; side + 2 < static_cast<StorageId>(problem.storages.size());
       side += 2) {
    problem.operators[problem.op_count() - 2].inputs.push_back(side);
  }
  const auto resident = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB, at most so far
  };
  const LeafSolvers leaves =
      program_leaves(Streams::kSeveral, {SolverKind::kHighs, "/nowhere"});
  const auto before = resident();
  const std::vector<int> timesteps = leaves.timesteps(problem, {});
  EXPECT_LT(resident() - before, 100 << 10);
  ASSERT_EQ(timesteps.size(), problem.op_count());
  for (size_t i = 0; i < timesteps.size(); i += 2) {
    EXPECT_EQ(timesteps[i], static_cast<int>(i / 2));
  }
}

TEST(RoamPrograms, PlanAStepOnOneStreamAndOnSeveral) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  const Problem problem = training_chain({.layers = 4, .steps = 3}).problem;
  RoamOptions options;
  options.limits.seconds = 4;
  options.divide_time = true;
  options.leaves = program_leaves(Streams::kOne, require_solver());
  EXPECT_THAT(violations(problem, roam(problem, options)), IsEmpty());
  options.leaves = program_leaves(Streams::kSeveral, require_solver());
  TimestepPlan several = roam_in_timesteps(problem, options);
  EXPECT_THAT(violations(problem, several.plan), IsEmpty());
  several.plan.freedom = Freedom::kOperators;
  EXPECT_THAT(violations(with_barriers(problem, several.timesteps), several.plan), IsEmpty());
}

}  // namespace
}  // namespace tidemark::planner::roam
