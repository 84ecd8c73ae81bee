#include "runtime/planner/schedule_from_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/planner/from_trace.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/validator.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner {
namespace {

using Do = Schedule::Do;
using Instruction = Schedule::Instruction;
using Block = Schedule::Block;

// w stays, x is initial, d is uploaded.
//
//   op 0 upload -> d     1 f w x -> a, workspace     2 g w d -> b     3 update w! a b    4 read
//   b
StepTrace trace() {
  StepTrace t;
  t.storages = {{.origin = "w", .size = Bytes(512), .at_start = true, .at_end = true},
                {.origin = "x", .size = Bytes(1024), .at_start = true},
                {.origin = "upload", .size = Bytes(512)},
                {.origin = "f", .size = Bytes(1024)},
                {.origin = "g", .size = Bytes(512)}};
  t.ops = {
      {.kind = StepTrace::Kind::kUpload, .name = "upload", .outputs = {2}},
      {.name = "f",
       .inputs = {{0, 0}, {1, 0}},
       .outputs = {3},
       .released = {1},
       .workspace = Bytes(100),
       .cost = Nanos(5)},
      {.name = "g", .inputs = {{0, 0}, {2, 0}}, .outputs = {4}, .released = {2}},
      {.name = "update", .inputs = {{0, 0, true}, {3, 0}, {4, 0}}, .released = {3}},
      {.kind = StepTrace::Kind::kRead, .name = "read", .inputs = {{4, 0}}, .released = {4}}};
  return t;
}

// The order is f, upload, g, update, read.
//
//   offset 2048   .   .   .   .   .
//          1536   w   d   d   .   .
//          1024   a   a   a   a   .
//           512   a   a   a   a   .
//             0   x   .   b   b   b      x has two units: [0, 1024), a [1024, 2048)
TEST(ScheduleFromPlan, RunsInThePlansOrderAndFreesWhereAPlacementEnds) {
  const StepTrace t = trace();
  ASSERT_TRUE(trace_violations(t).empty());
  const Problem problem = problem_from_trace(t, {.residents_apart = true});
  Plan plan;
  plan.order = {1, 0, 2, 3, 4};
  const auto place = [](int32_t storage, int32_t workspace_of, int64_t begin, int64_t end,
                        int64_t size, int64_t at) {
    return Placement{storage, workspace_of, begin, end, Bytes(size), Offset(at)};
  };
  plan.placements = {place(0, kNone, 0, 5, 0, 0),      place(1, kNone, 0, 1, 1024, 0),
                     place(2, kNone, 1, 3, 512, 2048), place(3, kNone, 0, 4, 1024, 1024),
                     place(4, kNone, 2, 5, 512, 0),    place(kNone, 1, 0, 1, 512, 2048)};
  plan.peak = Bytes(2560);
  plan.bound = Bytes(2048);
  plan.method = "by hand";

  const Schedule s = schedule_from_plan(t, problem, plan);
  EXPECT_EQ(s.code, (std::vector<Instruction>{
                        {Do::kRun, false, 1, 1, 2},
                        {Do::kFree, false, 1, 3, 0},
                        {Do::kUpload, false, 0, 3, 1},
                        {Do::kRun, false, 2, 4, 1},
                        {Do::kFree, false, 2, 5, 0},
                        {Do::kRun, false, 3, 5, 0},
                        {Do::kFree, false, 3, 5, 0},
                        {Do::kRead, false, 4, 5, 0},
                        {Do::kFree, false, 4, 5, 0},
                    }));
  EXPECT_EQ(s.blocks, (std::vector<Block>{
                          {1, Bytes(1024), 0, 2, Offset(0)},
                          {3, Bytes(1024), 0, 7, Offset(1024)},
                          {Schedule::kScratch, Bytes(512), 0, 1, Offset(2048)},
                          {2, Bytes(512), 2, 5, Offset(2048)},
                          {4, Bytes(512), 3, 9, Offset(0)},
                      }));
  EXPECT_EQ(s.initial_blocks, 1U) << "x alone: w is kept apart";
  EXPECT_TRUE(s.placed && s.residents_apart && !releases(s) && !in_program_order(s));
  EXPECT_EQ(s.peak, Bytes(2560));
  EXPECT_EQ(s.peak_bound, Bytes(2048));
  EXPECT_EQ(s.time, Nanos(5));
  EXPECT_EQ(s.method, "by hand");
}

// A storage that is made and stays has a block to the end.
TEST(ScheduleFromPlan, WhatStaysIsNotFreed) {
  StepTrace t;
  t.storages = {{.origin = "f", .size = Bytes(512), .at_end = true}};
  t.ops = {{.name = "f", .outputs = {0}}, {.name = "g"}};
  const Problem problem = problem_from_trace(t, {.residents_apart = true});
  Plan plan;
  plan.order = {0, 1};
  plan.placements = {{0, kNone, 0, 2, Bytes(512), Offset(0)}};
  const Schedule s = schedule_from_plan(t, problem, plan);
  ASSERT_EQ(s.code.size(), 2U);
  EXPECT_EQ(s.blocks, (std::vector<Block>{{0, Bytes(512), 0, 2, Offset(0)}}));
}

// The plan is valid in the space of its peak and the residents, and in no less.
TEST(ScheduleFromPlan, PlansOfRandomTracesAreValid) {
  std::mt19937 random(3);
  int64_t reordered = 0, in_place = 0;
  for (int i = 0; i < 100; ++i) {
    StepTrace t = testing::random_trace(random);
    if (i % 2 == 0) {  // with a read in the middle
      t.ops.insert(t.ops.begin() + static_cast<int64_t>(t.ops.size() / 2),
                   {.kind = StepTrace::Kind::kRead, .name = "read"});
    }
    const Problem problem =
        problem_from_trace(t, {.residents_apart = true, .in_place = i % 3 != 0});
    PlannerOptions options;
    options.limits = {.seconds = 1e6, .nodes = 2000};
    const Plan plan = plan_step(problem, options);
    ASSERT_TRUE(violations(problem, plan).empty());
    const Schedule s = schedule_from_plan(t, problem, plan);
    Bytes residents{0};
    for (const auto& storage : t.storages) {
      if (storage.at_start && storage.at_end) residents += storage.size;
    }
    const PlanLimits limits{.space = residents + plan.peak, .in_bandwidth = 1e9};
    const auto wrong = schedule_violations(t, limits, s);
    ASSERT_TRUE(wrong.empty()) << "trace " << i << ": " << wrong[0];
    PlanLimits less = limits;
    less.space -= Bytes(1);
    EXPECT_EQ(schedule_violations(t, less, s).size(), 1U);
    EXPECT_EQ(simulate(t, limits, s).peak, plan.peak);
    reordered += in_program_order(s) ? 0 : 1;
    in_place += std::count_if(s.code.begin(), s.code.end(),
                              [](const auto& instruction) { return instruction.in_place(); });
  }
  EXPECT_GT(reordered, 50);
  EXPECT_GT(in_place, 50);
}

}  // namespace
}  // namespace tidemark::planner
