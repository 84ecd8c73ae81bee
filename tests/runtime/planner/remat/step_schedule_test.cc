// Runs and frees of captured steps as schedules that sessions run.
#include "runtime/planner/remat/step_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/planner/remat/remat_bound.h"
#include "runtime/planner/remat/remat_planner.h"
#include "runtime/planner/remat/remat_validator.h"
#include "runtime/planner/reordered_trace.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"
#include "tests/runtime/planner/remat/small_problems.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TraceBuilder;
using testing::units;

// Uploads take no time.
PlanLimits ample() { return {.space = units(1000), .in_bandwidth = 1e30}; }

// "run 0", "again 0 scratch", "over 3 by 2": one text for each instruction.
std::vector<std::string> code_of(const tidemark::Schedule& schedule) {
  static constexpr const char* kNames[] = {"run",     "upload",  "read",     "free",   "evict",
                                           "copyout", "offload", "dropcopy", "copyin", "move"};
  std::vector<std::string> code;
  for (const auto& it : schedule.code) {
    const char* name = it.again ? "again" : kNames[static_cast<size_t>(it.what)];
    code.push_back(std::string(name) + " " + std::to_string(it.subject));
    if (it.in_place()) code.back() += " over " + std::to_string(it.overwrites);
    for (uint32_t b = it.first_block; it.again && b < it.first_block + it.blocks; ++b) {
      const uint32_t s = schedule.blocks[b].storage;
      code.back() += s == tidemark::Schedule::kScratch ? " scratch" : " s" + std::to_string(s);
    }
  }
  return code;
}

// w, x before the step; a = f(x, w), b = g(a), c = h(b), d = k(b, c), e = l(a, d), w updated by
// e. The program holds a until e is made.
struct Chain {
  Chain() {
    w = builder.outside(1, true);
    const uint32_t x = builder.upload(1);
    a = builder.call({x, w});
    b = builder.call({a});
    const uint32_t c = builder.call({b});
    const uint32_t d = builder.call({b, c});
    const uint32_t e = builder.call({a, d});
    builder.update(w);
    builder.reads(builder.last_call(), e);
  }
  TraceBuilder builder;
  uint32_t w = 0, a = 0, b = 0;
};

StepSchedule decode(const StepTrace& trace, const std::vector<Event>& runs,
                    const PlanLimits& limits = ample(), bool in_place = true) {
  const StepProblem step = problem_from_step(trace, {in_place});
  EXPECT_EQ(validate(step.problem, runs).fault, "");
  StepSchedule result = schedule_from_runs(trace, step, runs, limits, {});
  if (result.schedule) {
    EXPECT_THAT(schedule_violations(trace, limits, *result.schedule), IsEmpty());
  }
  return result;
}

TEST(StepSchedule, ValuesLeaveAndAreComputedAgain) {
  const Chain chain;
  const StepTrace trace = chain.builder.trace();
  // Storages: 0 w, 1 x, 2 a, 3 b, 4 c, 5 d, 6 e. Operators: 0 upload, 1 a, ... 5 e, 6 update.
  const StepSchedule made =
      decode(trace, {run(0), run(1), drop(0), run(2), run(3), drop(1), drop(2), run(0), run(4),
                     drop(0), drop(3), run(5), drop(4)});
  ASSERT_TRUE(made.schedule) << made.why_not;
  EXPECT_THAT(
      code_of(*made.schedule),
      ElementsAre("upload 0", "run 1", "run 2", "evict 2", "run 3", "run 4", "free 3", "free 4",
                  "again 1 s2", "run 5", "free 2", "free 5", "run 6", "free 1", "free 6"));
  const ScheduleCost cost = simulate(trace, ample(), *made.schedule);
  EXPECT_EQ(cost.time, Nanos(700));
  EXPECT_EQ(cost.recomputed, Nanos(100));
  EXPECT_EQ(made.schedule->time, cost.time);
  EXPECT_EQ(made.load, units(5)) << "w, x, b, c, d";
}

// The problem forbids to compute a again after w was updated; a schedule that does is not valid
// there, and the update is behind all readers.
TEST(StepSchedule, UpdatesComeAfterAllRunsOfReaders) {
  const Chain chain;
  const StepProblem step = problem_from_step(chain.builder.trace());
  EXPECT_THAT(step.problem.nodes[5].after, ElementsAre(0));
  EXPECT_THAT(
      validate(step.problem, {run(0), run(1), run(2), run(3), run(4), run(5), drop(0), run(0)})
          .fault,
      HasSubstr("comes after all its runs"));
}

// Another order of first runs: independent calls, then what they are for.
TEST(StepSchedule, AnotherOrder) {
  TraceBuilder builder;
  const uint32_t p = builder.outside(1, true), q = builder.outside(1, true);
  const uint32_t x = builder.upload();
  const uint32_t g = builder.call({x, p});
  const uint32_t h = builder.call({x, q});
  builder.update(p);
  builder.reads(builder.last_call(), g);
  builder.update(q);
  builder.reads(builder.last_call(), h);
  const StepTrace trace = builder.trace();
  const StepSchedule made = decode(trace, {run(0), run(2), drop(0), run(1), run(3), drop(1)});
  ASSERT_TRUE(made.schedule) << made.why_not;
  EXPECT_THAT(order_of(*made.schedule), ElementsAre(0, 1, 3, 2, 4));
  EXPECT_EQ(made.load, units(4));
}

// Node 0 made nothing that a later run could read, so it may come late for the problem, but the
// program reads it first.
TEST(StepSchedule, AnOrderThatTheDataForbidIsRefused) {
  TraceBuilder builder;
  const uint32_t p = builder.outside(1, true);
  builder.run({p});
  builder.update(p);
  const StepTrace trace = builder.trace();
  StepProblem step = problem_from_step(trace);
  step.problem.nodes[1].after.clear();  // as if the problem did not know
  const StepSchedule made = schedule_from_runs(trace, step, {run(1), run(0)}, ample(), {});
  EXPECT_FALSE(made.schedule);
  EXPECT_THAT(made.why_not,
              HasSubstr("operator 1 (call) runs before operator 0 (call), which"));
  EXPECT_THAT(schedule_from_runs(trace, step, {run(1)}, ample(), {}).why_not,
              HasSubstr("never runs"));
}

// What the program holds beyond an update of what it was computed from stays.
TEST(StepSchedule, WhatAnUpdateWouldLoseStays) {
  TraceBuilder builder;
  const uint32_t w = builder.outside(1, true);
  const uint32_t a = builder.call({w});
  const uint32_t b = builder.call({a});
  builder.update(w);
  builder.reads(builder.last_call(), b);
  builder.idle(1);
  builder.hold(a, 4);
  const StepTrace trace = builder.trace();
  const StepSchedule made = decode(trace, {run(0), run(1), drop(0), run(2), drop(1), run(3)});
  ASSERT_TRUE(made.schedule) << made.why_not;
  EXPECT_THAT(code_of(*made.schedule),
              ElementsAre("run 0", "run 1", "run 2", "free 2", "run 3", "free 1"));
}

TEST(StepSchedule, OutputsThatNoRunWantsLeave) {
  TraceBuilder builder;
  const uint32_t w = builder.outside(1, true);
  const uint32_t a = builder.call({w}, 100, 4);
  const uint32_t more = builder.also(1);
  const uint32_t b = builder.call({a});
  builder.run({b, a});
  builder.run({more});
  builder.hold(a, 4);
  const StepTrace trace = builder.trace();
  // Node 1 is `more`, the rider of node 0. First left out, then computed again with its node,
  // while the program holds a.
  const StepSchedule made = decode(trace, {run(0), run(2), run(3), drop(0), drop(2), run(0),
                                           run(1), drop(0), run(4), drop(1)});
  ASSERT_TRUE(made.schedule) << made.why_not;
  EXPECT_THAT(code_of(*made.schedule),
              ElementsAre("run 0", "evict 2", "run 1", "run 2", "evict 1", "free 3",
                          "again 0 s1 s2", "evict 1", "run 3", "free 2"));
}

TEST(StepSchedule, RunsInPlaceWhereTheInputDies) {
  TraceBuilder builder;
  const uint32_t w = builder.outside(1, true);
  const uint32_t a = builder.call({w});
  const uint32_t b = builder.call({a});
  builder.last().may_overwrite = {a};
  builder.run({b});
  const StepTrace trace = builder.trace();
  const StepProblem step = problem_from_step(trace);
  ASSERT_EQ(step.problem.nodes[1].variants.size(), 2U);
  EXPECT_EQ(problem_from_step(trace, {.in_place = false}).problem.nodes[1].variants.size(), 1U);
  const StepSchedule made = decode(trace, {run(0), run(1, 1), run(2), drop(1)});
  ASSERT_TRUE(made.schedule) << made.why_not;
  EXPECT_THAT(code_of(*made.schedule), ElementsAre("run 0", "run 1 over 1", "run 2", "free 2"));
  EXPECT_EQ(made.load, units(2));
}

TEST(StepSchedule, ALayoutThatDoesNotFitIsSaid) {
  const Chain chain;
  const StepTrace trace = chain.builder.trace();
  const StepSchedule made =
      decode(trace, {run(0), run(1), run(2), run(3), run(4), run(5)}, {.space = units(3)});
  EXPECT_FALSE(made.schedule);
  EXPECT_THAT(made.why_not, HasSubstr("no layout within 3.0 MiB was found; at most 7.0 MiB"));
}

// Steps of random calls under random budgets: whatever the search finds is a valid schedule,
// takes the time that the problem says, and mostly no more memory.
TEST(StepSchedule, RandomSteps) {
  int decoded = 0, again = 0, reordered = 0, in_place = 0, larger = 0;
  for (uint32_t seed = 1; seed <= tidemark::testing::cases(250u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const StepTrace trace = testing::random_trace(random);
    const StepProblem step = problem_from_step(trace);
    ASSERT_NO_THROW(check_problem(step.problem));
    for (const int share : {0, 3, 6}) {
      const int64_t least = bound_budget(step.problem);
      const int64_t budget = least + share * units(1).count();
      RematOptions options;
      options.limits.seconds = 1e9;
      options.limits.nodes = 1500;
      const RematPlan plan = plan_remat(step.problem, budget, options);
      if (!plan.found()) continue;
      const StepSchedule made =
          schedule_from_runs(trace, step, plan.schedule.events, ample(), {});
      ASSERT_TRUE(made.schedule) << made.why_not;
      ASSERT_THAT(schedule_violations(trace, ample(), *made.schedule), IsEmpty())
          << ::testing::PrintToString(code_of(*made.schedule));
      ++decoded;
      const ScheduleCost cost = simulate(trace, ample(), *made.schedule);
      again += cost.recomputed > Nanos(0);
      reordered += !in_program_order(*made.schedule);
      for (const auto& it : made.schedule->code) in_place += it.in_place();
      larger += made.load.count() > plan.schedule.peak;
      EXPECT_LE(static_cast<double>(cost.time.count()) * 1e-6, plan.schedule.time + 1e-9);
      if (made.load.count() <= plan.schedule.peak) {
        EXPECT_NEAR(static_cast<double>(cost.time.count()) * 1e-6, plan.schedule.time, 1e-9);
      }
    }
  }
  std::printf("%d schedules: %d compute again, %d reorder, %d runs in place, %d take more\n",
              decoded, again, reordered, in_place, larger);
  if (tidemark::testing::kSanitized) return;  // too few cases to cover everything
  EXPECT_GT(decoded, 300);
  EXPECT_GT(again, 50);
  EXPECT_GT(reordered, 50);
  EXPECT_GT(in_place, 50);
}

}  // namespace
}  // namespace tidemark::planner::remat
