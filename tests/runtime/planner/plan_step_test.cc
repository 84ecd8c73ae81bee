#include "runtime/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "runtime/core/errors.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/validator.h"
#include "tests/runtime/planner/problem_builder.h"
#include "tests/runtime/planner/random_problem.h"
#include "tests/support/sanitized.h"

namespace tidemark::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PlannerTest, AllOptionsAndBaselinesGiveValidPlans) {
  for (uint64_t seed = 0; seed < tidemark::testing::cases(200u); ++seed) {
    RandomProblemOptions shape;
    shape.ops = 1 + static_cast<int>(seed % 40);
    shape.aliases = seed % 3 != 0;
    const Problem problem = random_problem(seed, shape);
    Bytes best(INT64_MAX);
    for (const Baseline& baseline : baselines()) {
      const Plan plan = baseline.plan(problem);
      EXPECT_THAT(violations(problem, plan), IsEmpty()) << seed << ", " << baseline.name;
      EXPECT_EQ(plan.method, baseline.name);
      best = std::min(best, plan.peak);
    }
    for (const bool reorder : {false, true}) {
      for (const bool in_place : {false, true}) {
        PlannerOptions options;
        options.limits.nodes = 20'000;
        options.reorder = reorder;
        options.in_place = in_place;
        const Plan plan = plan_step(problem, options);
        EXPECT_THAT(violations(problem, plan), IsEmpty()) << seed;
        EXPECT_TRUE(in_place || plan.in_place.empty());
        if (reorder && in_place) {
          EXPECT_LE(plan.peak, best) << seed;
        }
        const Plan again = plan_step(problem, options);
        EXPECT_EQ(again.order, plan.order);
        EXPECT_EQ(again.peak, plan.peak);
      }
    }
  }
}

// A search that would run for hours.
Problem hard_problem() {
  RandomProblemOptions shape;
  shape.ops = 60;
  return random_problem(3, shape);
}

TEST(PlannerTest, CountsItsNodesTheSameEachTime) {
  std::atomic<int64_t> first{0}, second{0}, fewer{0};
  const auto plan_within = [](int64_t nodes, std::atomic<int64_t>& taken) {
    PlannerOptions options;
    options.limits = {.seconds = 1e9, .nodes = nodes, .taken = &taken};
    return plan_step(hard_problem(), options);
  };
  plan_within(20'000, first);
  plan_within(20'000, second);
  plan_within(1'000, fewer);
  EXPECT_GT(first.load(), 0);
  EXPECT_EQ(first.load(), second.load());
  EXPECT_LT(fewer.load(), first.load());
}

TEST(PlannerTest, EndsSoonOnceItIsStopped) {
  const std::atomic<bool> stop{true};
  std::atomic<int64_t> taken{0}, all{0};
  PlannerOptions options;
  options.limits = {.seconds = 1e9, .nodes = 2'000'000, .taken = &all};
  plan_step(hard_problem(), options);
  options.limits.stop = &stop;
  options.limits.taken = &taken;
  const Plan plan = plan_step(hard_problem(), options);
  EXPECT_THAT(violations(hard_problem(), plan), IsEmpty());
  EXPECT_GT(all.load(), 100'000);
  EXPECT_LT(taken.load(), 10'000);
}

// The note's chain: a = f(x), b = f(a), c = f(b), each of 10 bytes.
Problem chain(bool b_is_used_again) {
  Problem problem;
  for (int i = 0; i < 4; ++i) {
    add_storage(problem, std::string(1, "xabc"[i]), 10);
  }
  problem.storages.front().at_start = problem.storages.back().at_end = true;
  for (int i = 0; i < 3; ++i) {
    add_operator(problem, "sigmoid" + std::to_string(i), {i}, {i + 1});
    problem.may_be_in_place.push_back({i, i, i + 1});
  }
  if (b_is_used_again) add_operator(problem, "f", {2}, {});
  return problem;
}

Bytes note(const Problem& problem, bool in_place, bool sharing) {
  MemoryNoteOptions options;
  options.in_place = in_place;
  options.sharing = sharing;
  const Plan plan = memory_note(problem, options);
  EXPECT_THAT(violations(problem, plan), IsEmpty());
  return plan.peak;
}

TEST(MemoryNoteTest, CountersDecide) {
  EXPECT_EQ(note(chain(false), false, false), Bytes(40));
  EXPECT_EQ(note(chain(false), true, false), Bytes(10));
  EXPECT_EQ(note(chain(false), false, true), Bytes(20));
  EXPECT_EQ(note(chain(false), true, true), Bytes(10));
  // The trap: b is still needed after c = f(b), so c must not take its place.
  EXPECT_EQ(note(chain(true), true, false), Bytes(20));
}

TEST(MemoryNoteTest, BlocksGrowWithinTheRange) {
  Problem problem;
  for (const int64_t size : {100, 1, 120, 1}) {
    add_operator(problem, "", {}, {add_storage(problem, "", size)});
  }
  // 120 grows the block of 100; 1 is too small to take it, and shares with 1.
  EXPECT_EQ(note(problem, false, true), Bytes(121));
}

TEST(PlannerTest, InPlaceWhereItPays) {
  const Plan plan = plan_step(chain(false));
  EXPECT_EQ(plan.peak, Bytes(10));
  EXPECT_EQ(plan.bound, Bytes(10));
  EXPECT_EQ(plan.in_place.size(), 3U);
}

TEST(PlannerTest, NothingToPlan) {
  const Plan plan = plan_step(Problem{});
  EXPECT_EQ(plan.peak, Bytes(0));
  EXPECT_THAT(violations(Problem{}, plan), IsEmpty());
}

std::string refusal(const std::function<void(Problem&)>& spoil) {
  Problem problem = chain(false);
  spoil(problem);
  try {
    plan_step(problem);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ProblemTest, RefusesWithThePlace) {
  EXPECT_THAT(refusal([](Problem& p) { p.storages[1].size = Bytes(-1); }),
              HasSubstr("storage 1 'a': negative size"));
  EXPECT_THAT(refusal([](Problem& p) { p.storages[1].size = Bytes(INT64_MAX); }),
              HasSubstr("sum to more"));
  EXPECT_THAT(refusal([](Problem& p) { p.operators[1].workspace = Bytes(-5); }),
              HasSubstr("operator 1 'sigmoid1', workspace: negative"));
  EXPECT_THAT(refusal([](Problem& p) { p.operators[1].inputs = {9}; }),
              HasSubstr("input 9 does not exist"));
  EXPECT_THAT(refusal([](Problem& p) { p.operators[2].outputs = {-2}; }),
              HasSubstr("output -2 does not exist"));
  EXPECT_THAT(refusal([](Problem& p) { p.operators[0].after = {7}; }),
              HasSubstr("runs after 7"));
  EXPECT_THAT(refusal([](Problem& p) { p.operators[0].after = {2}; }), HasSubstr("cycle"));
  EXPECT_THAT(refusal([](Problem& p) { p.operators[1].after = {1}; }), HasSubstr("cycle"));
  EXPECT_THAT(refusal([](Problem& p) { p.operators[2].outputs.push_back(1); }),
              HasSubstr("as operator 0 'sigmoid0' does"));
  EXPECT_THAT(refusal([](Problem& p) { p.operators[2].outputs.push_back(0); }),
              HasSubstr("exists at the start"));
  EXPECT_THAT(refusal([](Problem& p) { p.storages.push_back({}); }),
              HasSubstr("neither written nor"));
  EXPECT_THAT(refusal([](Problem& p) {
                p.storages[2].alias_of = 1;
                p.storages[2].alias_offset = Bytes(1);
              }),
              HasSubstr("extends beyond"));
  EXPECT_THAT(refusal([](Problem& p) {
                p.storages[2].alias_of = 1;
                p.storages[3].alias_of = 2;
              }),
              HasSubstr("alias of an alias"));
  EXPECT_THAT(refusal([](Problem& p) {
                p.may_be_in_place.push_back({0, 3, 1});
              }),
              HasSubstr("in-place pair"));
}

}  // namespace
}  // namespace tidemark::planner
