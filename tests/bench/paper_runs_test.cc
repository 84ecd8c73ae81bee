#include "bench/paper_runs.h"

#include <gmock/gmock.h>

namespace tidemark {
namespace {

const PaperModel kModel{.network = "resnet18", .batch = 8};

TEST(PaperRuns, PoliciesAndFilters) {
  EXPECT_EQ(parse_policy("tide").name, "tide");
  EXPECT_EQ(parse_policy("tide").filter, "");
  EXPECT_EQ(parse_policy("delta:lru").name, "delta");
  EXPECT_EQ(parse_policy("delta:lru").filter, "lru");
  const PaperPolicy both = parse_policy("delta:lru/no-link,no-async");
  EXPECT_EQ(both.name, "delta");
  EXPECT_EQ(both.filter, "lru");
  EXPECT_EQ(both.repairs, "no-link,no-async");
  EXPECT_EQ(parse_policy("delta/no-link").repairs, "no-link");
}

// A budget that is no limit: releases begin at it, and more is used.
TEST(PaperRuns, ASoftBudgetIsNoLimit) {
  const PaperNeed need = measure_need(kModel);
  PaperRun run{.policy = {"delta-paper"},
               .budget = share_of(need.unmanaged.peak, 0.5),
               .host_limit = 2 * need.unmanaged.peak,
               .soft = true};
  const PaperResult soft = run_paper(kModel, need, run);
  ASSERT_TRUE(soft.ran()) << soft.failure;
  EXPECT_GT(soft.last.evictions + soft.last.offloads, 0);
  EXPECT_GT(soft.peak_live, run.budget);
  run.soft = false;
  EXPECT_LE(run_paper(kModel, need, run).peak_live, run.budget);
}

TEST(PaperRuns, NeedsOfImagesAndTexts) {
  const PaperNeed need = measure_need(kModel);
  EXPECT_GT(need.ms, 0);
  EXPECT_GT(need.unmanaged.peak, need.minimum);
  EXPECT_GE(need.minimum, need.unmanaged.largest_operator);
  // Parameters and optimizer state have to stay where there is no tier.
  EXPECT_GT(minimum_without_tiers(kModel, need), need.minimum);

  const PaperModel text{.network = "bert-tiny", .batch = 4, .length = 128};
  PaperModel eager = text;
  eager.eager = true;
  EXPECT_GT(measure_need(eager, false).unmanaged.peak,
            measure_need(text, false).unmanaged.peak);
  PaperModel squad = text;
  squad.squad = true;
  EXPECT_GT(measure_need(squad, false).ms, 0);
}

TEST(PaperRuns, TheUnmanagedPeakIsEnough) {
  const PaperNeed need = measure_need(kModel);
  const PaperResult result =
      run_paper(kModel, need, {.policy = {"tide"}, .budget = need.unmanaged.peak});
  ASSERT_TRUE(result.ran()) << result.failure;
  EXPECT_DOUBLE_EQ(result.ms, need.ms);
  EXPECT_EQ(result.last.evictions + result.last.offloads, 0);
}

TEST(PaperRuns, BudgetsAreKeptAndRunsRepeat) {
  const PaperNeed need = measure_need(kModel);
  for (const char* policy : {"tide", "delta:greedy", "delta-paper", "msps", "offload-only"}) {
    SCOPED_TRACE(policy);
    const PaperRun run{.policy = parse_policy(policy),
                       .budget = share_of(need.unmanaged.peak, 0.6),
                       .host_limit = 2 * need.unmanaged.peak,
                       .keep_events = true};
    const PaperResult result = run_paper(kModel, need, run);
    ASSERT_TRUE(result.ran()) << result.failure;
    EXPECT_LE(result.peak, run.budget);
    EXPECT_GE(result.ms, need.ms);
    EXPECT_GT(result.last.evictions + result.last.offloads, 0);
    EXPECT_DOUBLE_EQ(run_paper(kModel, need, run).ms, result.ms);
    // One step's events.
    ASSERT_FALSE(result.events.empty());
    EXPECT_EQ(result.events.front().kind, EventKind::kStepBegin);
    EXPECT_EQ(std::count_if(
                  result.events.begin(), result.events.end(),
                  [](const EventRecord& event) { return event.kind == EventKind::kStepBegin; }),
              1);
  }
}

TEST(PaperRuns, CopiesThatComputeWaitsForTakeLonger) {
  const PaperNeed need = measure_need(kModel);
  PaperRun run{.policy = {"offload-only"},
               .budget = share_of(need.unmanaged.peak, 0.6),
               .host_limit = 2 * need.unmanaged.peak};
  const double with = run_paper(kModel, need, run).ms;
  run.overlap = false;
  EXPECT_GT(run_paper(kModel, need, run).ms, with);
}

TEST(PaperRuns, WhatDoesNotFitOrThrashesIsSaid) {
  const PaperNeed need = measure_need(kModel);
  PaperRun run{.policy = {"delta"}, .budget = need.unmanaged.largest_operator};
  const PaperResult failed = run_paper(kModel, need, run);
  EXPECT_THAT(failed.failure, ::testing::HasSubstr("budget"));
  EXPECT_FALSE(failed.ran());

  run = {.policy = {"offload-only"},
         .budget = need.minimum,
         .host_limit = 2 * need.unmanaged.peak,
         .give_up = 1.01};
  const PaperResult slow = run_paper(kModel, need, run);
  EXPECT_TRUE(slow.gave_up);
  EXPECT_FALSE(slow.ran());
}

}  // namespace
}  // namespace tidemark
