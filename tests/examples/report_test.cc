#include "examples/common/report.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using Json = nlohmann::json;

RunReport sample() {
  RunReport report;
  report.program = "train_resnet";
  report.flags.model = "resnet18";
  report.flags.policy = "delta";
  report.flags.delta.filter = "base";
  report.batch = 8;
  report.unmanaged.emplace();
  report.unmanaged->peak = Bytes(4096);
  report.minimum = MinimumBudget{.budget = Bytes(1024)};
  report.budget = Bytes(2048);
  report.peak_reserved = Bytes(2048);
  report.peak_live = Bytes(1536);
  report.host_peak = report.disk_peak = Bytes(0);
  report.params_checksum = "0123456789abcdef";
  TrainedStep step;
  step.loss = 1.5F;
  step.stats.evictions = 3;
  step.stats.duration = Nanos(2'000'000);
  report.steps = {step};
  report.evaluation.accuracy = 0.5;
  return report;
}

// Scripts rely on these names.
TEST(Report, JsonHasTheKeysOfTheContract) {
  const Json json = Json::parse(to_json(sample()));
  EXPECT_EQ(json.at("program"), "train_resnet");
  EXPECT_EQ(json.at("model"), "resnet18");
  EXPECT_EQ(json.at("dtype"), "float32");
  EXPECT_EQ(json.at("device"), "cpu");
  EXPECT_EQ(json.at("policy"), "delta");
  EXPECT_EQ(json.at("filter"), "base");
  EXPECT_EQ(json.at("batch"), 8);
  EXPECT_EQ(json.at("budget_bytes"), 2048);
  EXPECT_EQ(json.at("minimum_budget_bytes"), 1024);
  EXPECT_EQ(json.at("unmanaged_peak_bytes"), 4096);
  EXPECT_EQ(json.at("peak_reserved_bytes"), 2048);
  EXPECT_EQ(json.at("peak_live_bytes"), 1536);
  EXPECT_EQ(json.at("host_peak_bytes"), 0);
  EXPECT_EQ(json.at("disk_peak_bytes"), 0);
  EXPECT_EQ(json.at("params_checksum"), "0123456789abcdef");
  EXPECT_EQ(json.at("eval").at("accuracy"), 0.5);
  const Json& step = json.at("steps").at(0);
  EXPECT_EQ(step.at("step"), 0);
  EXPECT_EQ(step.at("loss"), 1.5);
  EXPECT_EQ(step.at("loss_bits"), "3fc00000");
  EXPECT_EQ(step.at("ms"), 2.0);
  EXPECT_EQ(step.at("mode"), "dynamic");
  for (const char* key :
       {"peak_reserved_bytes", "evictions", "offloads", "reloads", "recomputes",
        "offload_bytes", "reload_bytes", "recompute_ms", "stall_ms", "planning_ms"}) {
    EXPECT_TRUE(step.contains(key)) << key;
  }
}

TEST(Report, WhatIsNotKnownIsNull) {
  RunReport report;
  report.flags.policy = "none";
  report.steps.emplace_back();
  const Json json = Json::parse(to_json(report));
  for (const char* key :
       {"filter", "budget_bytes", "minimum_budget_bytes", "unmanaged_peak_bytes",
        "peak_reserved_bytes", "host_peak_bytes", "params_checksum"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  EXPECT_TRUE(json.at("steps")[0].at("loss").is_null());
  EXPECT_TRUE(json.at("steps")[0].at("loss_bits").is_null());
  EXPECT_TRUE(json.at("eval").at("accuracy").is_null());
}

TEST(Report, ALossThatIsNoNumberKeepsItsBits) {
  RunReport report = sample();
  report.steps[0].loss = std::numeric_limits<float>::infinity();
  const Json json = Json::parse(to_json(report));
  EXPECT_TRUE(json.at("steps")[0].at("loss").is_null());
  EXPECT_EQ(json.at("steps")[0].at("loss_bits"), "7f800000");
}

TEST(Report, TablesSayTheNumbers) {
  const std::string need = need_table(sample());
  EXPECT_THAT(need, ::testing::HasSubstr("4096"));
  EXPECT_THAT(need, ::testing::HasSubstr("1024"));
  EXPECT_THAT(need, ::testing::HasSubstr("25.0 %"));
  EXPECT_THAT(result_table(sample()),
              ::testing::HasSubstr("saved       2.0 KiB of the arena (50.0 %)"));
}

TEST(Report, APlanIsComparedWithItsBounds) {
  RunReport report = sample();
  PlanSummary plan;
  plan.followed.emplace();
  plan.followed->releases = true;
  plan.followed->ample_time = Nanos(100'000);
  plan.followed->time = Nanos(112'340);
  plan.followed->time_bound = Nanos(103'490);
  report.plan = plan;
  EXPECT_THAT(result_table(report),
              ::testing::HasSubstr("  12.3 % over the step without a limit, as modelled; "
                                   "no plan in this order can be below 3.4 %\n"));
  report.plan->followed->any_order_bound = Nanos(102'040);
  EXPECT_THAT(
      result_table(report),
      ::testing::HasSubstr("as modelled; no plan can be below 2.0 %, none in this order "
                           "below 3.4 %\n"));
  report.plan->followed->any_order_bound = Nanos(103'490);
  EXPECT_THAT(result_table(report),
              ::testing::HasSubstr("as modelled; no plan can be below 3.4 %\n"));
  report.plan->followed->any_order_bound = Nanos(0);
  report.plan->followed->time_bound = Nanos(100'040);
  EXPECT_THAT(result_table(report),
              ::testing::HasSubstr("  12.3 % over the step without a limit, as modelled; "
                                   "no bound above that step is known\n"));
}

// The policy's releases take time that is not modelled; bounds hold all the same.
TEST(Report, APlanThatLeavesReleasesToThePolicyHasBounds) {
  RunReport report = sample();
  PlanSummary::Followed& plan = report.plan.emplace().followed.emplace();
  plan.releases = plan.is_partial = true;
  plan.ample_time = Nanos(100'000);
  plan.time = Nanos(101'000);
  plan.time_bound = plan.any_order_bound = Nanos(103'490);
  EXPECT_THAT(result_table(report),
              ::testing::HasSubstr("is not known, as it leaves some releases to the policy; "
                                   "no plan can be below 3.4 %\n"));
  const Json json = Json::parse(to_json(report)).at("plan");
  EXPECT_FALSE(json.contains("ms"));
  EXPECT_DOUBLE_EQ(json.at("bound_ms").get<double>(), 0.10349);
}

TEST(Report, APlanWithoutReleasesTakesNoLonger) {
  RunReport report = sample();
  report.plan.emplace().followed.emplace();
  EXPECT_THAT(result_table(report), ::testing::HasSubstr("so a step takes no longer"));
}

TEST(Report, WhatAPlanCostsIsSaidWithoutBounds) {
  RunReport report = sample();
  PlanSummary::Followed& plan = report.plan.emplace().followed.emplace();
  plan.releases = true;
  plan.time = Nanos(112'340);
  EXPECT_THAT(result_table(report), ::testing::Not(::testing::HasSubstr("without a limit")));
  EXPECT_FALSE(Json::parse(to_json(report)).at("plan").contains("ample_ms"));
  plan.ample_time = Nanos(100'000);
  EXPECT_THAT(result_table(report),
              ::testing::HasSubstr("  12.3 % over the step without a limit, as modelled; "
                                   "the run ended before a bound was known\n"));
  const Json json = Json::parse(to_json(report)).at("plan");
  EXPECT_DOUBLE_EQ(json.at("ample_ms").get<double>(), 0.1);
  EXPECT_DOUBLE_EQ(json.at("ms").get<double>(), 0.11234);
  EXPECT_FALSE(json.contains("bound_ms"));
}

TEST(Report, APlanWithReleasesStatesTheLeastMemoryOfAny) {
  RunReport report = sample();
  report.plan.emplace().followed.emplace().releases = true;
  report.minimum->budget = Bytes(1024);
  report.minimum->is_least = true;
  EXPECT_THAT(result_table(report),
              ::testing::HasSubstr("no plan fits in less than 1.0 KiB\n"));
  EXPECT_EQ(Json::parse(to_json(report)).at("plan").at("bound_bytes"), 1024);
  report.minimum->is_least = false;
  EXPECT_THAT(result_table(report), ::testing::Not(::testing::HasSubstr("no plan fits")));
  EXPECT_FALSE(Json::parse(to_json(report)).at("plan").contains("bound_bytes"));
}

TEST(Report, PlanningIsSaidBesideTheTimeOfSteps) {
  RunReport report = sample();
  EXPECT_THAT(result_table(report), ::testing::Not(::testing::HasSubstr("planning")));
  EXPECT_EQ(Json::parse(to_json(report)).at("planning_ms"), 0);
  report.steps.push_back(report.steps[0]);
  report.steps[0].stats.planning_time = Nanos(1'500'000'000);
  report.steps[1].stats.planning_time = Nanos(700'000'000);
  EXPECT_THAT(
      result_table(report),
      ::testing::HasSubstr("  time        2 steps, 2.0 ms each\n"
                           "  planning    2.2 s between steps, not included in their time\n"));
  EXPECT_EQ(Json::parse(to_json(report)).at("planning_ms"), 2200);
}

TEST(Report, WithoutAStepNothingIsSaidOfSteps) {
  RunReport report = sample();
  for (const char* line : {"  saved  ", "  recomputed  ", "  moved  ", "  waited  "}) {
    EXPECT_THAT(result_table(report), ::testing::HasSubstr(line));
  }
  report.steps.clear();
  for (const char* line : {"saved", "recomputed", "moved", "waited"}) {
    EXPECT_THAT(result_table(report), ::testing::Not(::testing::HasSubstr(line)));
  }
  EXPECT_THAT(result_table(report), ::testing::HasSubstr("peak of the arena"));
}

TEST(Report, APredictionCountsWhatIsUsedOfTheHostTier) {
  RunReport report = sample();
  report.arena_in_ram = false;
  report.host_limit = Bytes(1 << 30);
  StepPrediction known;
  known.rounds = 2;
  known.host_peak = Bytes(2048);
  report.predictions = {{Bytes(4096), Bytes((1 << 30) + 3072), {}, known},
                        {Bytes(2048), Bytes((1 << 30) + 3072), {}, std::nullopt}};
  const std::string table = need_table(report);
  EXPECT_THAT(table, ::testing::HasSubstr("host side <="));
  EXPECT_THAT(table, ::testing::HasSubstr("100.0 %     5.0 KiB"));
  EXPECT_THAT(table, ::testing::HasSubstr("<= at most, with 192.0 MiB set aside"));
  const Json json = Json::parse(to_json(report)).at("predictions");
  EXPECT_EQ(json.at(0).at("process_promised_bytes"), (1 << 30) + 3072);
  EXPECT_EQ(json.at(0).at("process_bytes"), 5120);
}

// Of a process that loads with 100 bytes and takes 300 itself, 250 of them from the start.
RunReport of_process(Bytes peak) {
  RunReport report = sample();
  report.loader_bytes = Bytes(100);
  report.program_memory = Bytes(250);
  report.process_peak = peak;
  report.process_promised = Bytes(3000);
  return report;
}

TEST(Report, LeadsWithTheProcess) {
  const RunReport report = of_process(Bytes(2048 + 100 + 300));
  EXPECT_EQ(process_without_budget(report), Bytes(4096 + 100 + 250));
  const std::string table = result_table(report);
  EXPECT_LT(table.find("memory of the process"), table.find("memory of the arena"));
  EXPECT_THAT(table, ::testing::HasSubstr("without a budget               4.3 KiB  predicted: "
                                          "arena 4.0 KiB, loading 100 B, program 250 B"));
  EXPECT_THAT(table, ::testing::HasSubstr("arena 2.0 KiB, loading 100 B, program 300 B"));
  EXPECT_THAT(table, ::testing::HasSubstr("promised                       2.9 KiB  kept"));
  EXPECT_THAT(table, ::testing::HasSubstr("saved       2.0 KiB of the process (44.9 %), "
                                          "2.0 KiB of the arena (50.0 %)"));
  const Json json = Json::parse(to_json(report));
  EXPECT_EQ(json.at("process_unmanaged_bytes"), 4446);
  EXPECT_EQ(json.at("process_unmanaged_is_measured"), false);
  EXPECT_EQ(json.at("process_peak_bytes"), 2448);
  EXPECT_EQ(json.at("process_promised_bytes"), 3000);
}

TEST(Report, SaysThatAPromiseWasExceeded) {
  EXPECT_THAT(result_table(of_process(Bytes(3100))), ::testing::HasSubstr("EXCEEDED by 100 B"));
}

TEST(Report, ALargerProcessHasSavedNothing) {
  RunReport report = of_process(Bytes(9000));
  report.host_peak = Bytes(6000);
  EXPECT_THAT(result_table(report),
              ::testing::HasSubstr("saved       nothing: the process is 4.4 KiB larger; "
                                   "2.0 KiB of the arena (50.0 %)"));
}

TEST(Report, WithoutABudgetTheProcessIsMeasured) {
  RunReport report = of_process(Bytes(5000));
  report.budget.reset();
  EXPECT_EQ(process_without_budget(report), Bytes(5000));
  EXPECT_THAT(result_table(report), ::testing::Not(::testing::HasSubstr("predicted")));
  EXPECT_EQ(Json::parse(to_json(report)).at("process_unmanaged_is_measured"), true);
}

TEST(Report, OnAGpuTheArenaIsNotOfTheProcess) {
  RunReport report = of_process(Bytes(1000));
  report.arena_in_ram = false;
  report.host_peak = Bytes(500);
  EXPECT_EQ(process_without_budget(report), Bytes(350));
  EXPECT_THAT(result_table(report), ::testing::HasSubstr("on the host"));
}

TEST(Report, PredictionsAreBesideTheUnmanagedStep) {
  RunReport report = sample();
  const auto taking = [](int64_t ms) {
    StepPrediction prediction;
    prediction.step.duration = Nanos(ms * 1'000'000);
    prediction.rounds = kTrialRounds;
    return prediction;
  };
  report.predictions = {{Bytes(4096), Bytes(5000), {}, taking(100)},
                        {Bytes(2048), Bytes(3000), {}, taking(125)},
                        {Bytes(1024), Bytes(2000), {}, std::nullopt}};
  report.predictions[1].step->step.offload_bytes = Bytes(1024);
  report.predictions[1].step->disk_peak = Bytes(1024);
  const std::string table = need_table(report);
  EXPECT_THAT(table, ::testing::HasSubstr("  2.0 KiB  50.0 %     2.9 KiB    125.0 ms    25.0 %"
                                          "     1.0 KiB      0.0 ms  disk\n"));
  EXPECT_THAT(table, ::testing::HasSubstr("memory ran out in the simulation"));
  const Json json = Json::parse(to_json(report)).at("predictions");
  EXPECT_EQ(json.at(0).at("overhead_percent"), 0);
  EXPECT_EQ(json.at(1).at("overhead_percent"), 25);
  EXPECT_EQ(json.at(1).at("offload_bytes"), 1024);
  EXPECT_EQ(json.at(2).at("completes"), false);
  EXPECT_EQ(json.at(2).at("stopped"), false);
}

TEST(Report, APredictionByTideIsWithoutItsPlanning) {
  RunReport report = sample();
  StepPrediction known;
  known.rounds = 2;
  report.predictions = {{Bytes(4096), Bytes(5000), {"tide"}, known}};
  EXPECT_THAT(need_table(report), ::testing::Not(::testing::HasSubstr("planning")));
  report.predictions.push_back({Bytes(2048), Bytes(3000), {"dtr"}, known});
  EXPECT_THAT(need_table(report), ::testing::Not(::testing::HasSubstr("planning")));
  report.predictions.push_back({Bytes(1024), Bytes(2000), {"tide"}, known});
  EXPECT_THAT(need_table(report),
              ::testing::HasSubstr("  planning: in the background once steps repeat"));
  report.flags.plan = false;
  EXPECT_THAT(need_table(report), ::testing::Not(::testing::HasSubstr("planning")));
}

TEST(Report, SaysWhereTheDryRunStopped) {
  RunReport report = sample();
  StepPrediction known;
  known.rounds = 2;
  report.predictions = {{Bytes(4096), Bytes(5000), {}, known},
                        {Bytes(2048), Bytes(3000), {}, StepPrediction(), /*stopped=*/true}};
  EXPECT_THAT(need_table(report), ::testing::Not(::testing::HasSubstr("stopped at its limit")));
  EXPECT_THAT(need_table(report), ::testing::HasSubstr("simulating one step takes too long"));
  EXPECT_EQ(Json::parse(to_json(report)).at("minimum_is_least"), true);
  report.predictions[0].stopped = true;
  report.minimum->is_least = false;
  EXPECT_THAT(need_table(report), ::testing::HasSubstr("may in a smaller one"));
  EXPECT_THAT(need_table(report), ::testing::HasSubstr("* the dry run stopped at its limit"));
  const Json json = Json::parse(to_json(report));
  EXPECT_EQ(json.at("minimum_is_least"), false);
  EXPECT_EQ(json.at("predictions").at(0).at("simulated_steps"), 2);
  EXPECT_TRUE(json.at("predictions").at(1).at("completes").is_null());
}

TEST(Report, UnwritableFileIsAnError) {
  EXPECT_THROW(write_json(sample(), "/nowhere/at/all.json"), DataError);
}

}  // namespace
}  // namespace tidemark
