#include "runtime/planner/reordered_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/support/schedule_with_order.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner {
namespace {

using testing::TraceBuilder;

// 0 grad -> s2   1 grad -> s3   2 sgd s0! s2   3 sgd s1! s3
StepTrace two_updates() {
  TraceBuilder builder;
  const uint32_t v = builder.outside(1, true), w = builder.outside(1, true);
  const uint32_t grad_v = builder.call({v}, 100, 4), grad_w = builder.call({w}, 100, 4);
  builder.run({v, grad_v});
  builder.writes(v);
  builder.run({w, grad_w});
  builder.writes(w);
  return builder.trace();
}

TEST(ReorderedTrace, StoragesAreLetGoOfAfterTheirLastUserThere) {
  const StepTrace trace = two_updates();
  const StepTrace other = reordered(trace, {1, 3, 0, 2});
  EXPECT_EQ(trace_violations(other), std::vector<std::string>());
  EXPECT_EQ(other.ops[1].inputs, trace.ops[3].inputs);
  EXPECT_EQ(other.ops[1].released, std::vector<uint32_t>{3});
  EXPECT_EQ(other.ops[3].released, std::vector<uint32_t>{2});
  EXPECT_EQ(other.storages, trace.storages);
}

// The program may hold a storage for longer than it is used.
TEST(ReorderedTrace, NothingIsLetGoOfBeforeTheProgramDoes) {
  TraceBuilder builder;
  const uint32_t a = builder.call({}), b = builder.call({a});
  builder.call({b});
  builder.hold(a, 3);
  const StepTrace trace = builder.trace();
  ASSERT_EQ(trace.ops[2].released.front(), a);
  const StepTrace same = reordered(trace, {0, 1, 2});
  EXPECT_EQ(same.ops[2].released.front(), a);
}

TEST(ReorderedTrace, ProgramOrderChangesNothing) {
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    const StepTrace trace = testing::random_trace(random);
    std::vector<uint32_t> order(trace.ops.size());
    std::iota(order.begin(), order.end(), 0u);
    StepTrace same = reordered(trace, order);
    for (size_t k = 0; k < order.size(); ++k) {
      std::vector<uint32_t> released = trace.ops[k].released;
      std::sort(released.begin(), released.end());
      EXPECT_EQ(same.ops[k].released, released);
      same.ops[k].released = trace.ops[k].released;
    }
    EXPECT_EQ(same, trace);
  }
}

TEST(ReorderedTrace, EveryOrderThatTheDataAllowIsAStepThatCanBe) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const StepTrace trace = testing::random_trace(random);
    const auto order = testing::random_order(trace, random);
    ASSERT_EQ(order.size(), trace.ops.size());
    EXPECT_EQ(trace_violations(reordered(trace, order)), std::vector<std::string>());
    const auto early = updates_first(trace);
    ASSERT_TRUE(std::is_permutation(early.begin(), early.end(), order.begin()));
    EXPECT_EQ(trace_violations(reordered(trace, early)), std::vector<std::string>());
  }
}

TEST(ReorderedTrace, UpdatesFollowTheirGradients) {
  const StepTrace trace = two_updates();
  EXPECT_EQ(updates_first(trace), (std::vector<uint32_t>{0, 2, 1, 3}));
  EXPECT_LT(program_order_peak(reordered(trace, updates_first(trace))),
            program_order_peak(trace));
}

// A read is a barrier, and a reader of a parameter's old value comes before the update.
TEST(ReorderedTrace, UpdatesPassNeitherReadsNorReadersOfWhatTheyWrite) {
  TraceBuilder builder;
  const uint32_t w = builder.outside(1, true);
  const uint32_t gradient = builder.call({w});
  const uint32_t loss = builder.call({w, gradient});
  builder.call({loss});
  builder.run({w, gradient});
  builder.writes(w);
  EXPECT_EQ(updates_first(builder.trace()), (std::vector<uint32_t>{0, 1, 3, 2}));
}

TEST(ReorderedTrace, SchedulesSpeakOfTheProgramsOperators) {
  Schedule schedule;
  schedule.code = {{.what = Schedule::Do::kRun, .subject = 0},
                   {.what = Schedule::Do::kEvict, .subject = 1},
                   {.what = Schedule::Do::kRun, .again = true, .subject = 0},
                   {.what = Schedule::Do::kUpload, .subject = 2},
                   {.what = Schedule::Do::kRead, .subject = 1},
                   {.what = Schedule::Do::kFree, .subject = 2}};
  rename_operators(schedule, {2, 0, 1});
  std::vector<uint32_t> subjects;
  for (const auto& instruction : schedule.code) subjects.push_back(instruction.subject);
  EXPECT_EQ(subjects, (std::vector<uint32_t>{2, 1, 2, 1, 0, 2}));
  EXPECT_EQ(order_of(schedule), (std::vector<uint32_t>{2, 1, 0}));
}

}  // namespace
}  // namespace tidemark::planner
