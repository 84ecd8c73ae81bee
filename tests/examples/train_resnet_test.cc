// The program as scripts use it: exit codes, the JSON file, and results that do not depend on
// memory.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/device/device.h"
#include "tests/examples/train_resnet.h"
#include "tests/support/machine.h"
#include "tests/support/running_program.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using TrainResnetTest = testing::TrainResnet;

bool gpu_is_here() {
  try {
    device_profile("cuda");
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

TEST_F(TrainResnetTest, ADryRunForAGpuNeedsNoneAndThenSaysThatItEstimates) {
  const std::string dry = "--dry-run --device cuda --data synthetic --batch 8 ";
  for (const std::string& profile : {std::string(), std::string("h100-80gb")}) {
    const Result result = run(dry + (profile.empty() ? "" : "--profile " + profile));
    ASSERT_EQ(result.code, 0) << result.error;
    EXPECT_EQ(result.json.at("device"), "cuda");
    EXPECT_GT(result.json.at("unmanaged_peak_bytes"), 0);
    EXPECT_THAT(result.out, StartsWith("The CUDA device is experimental: "));
    EXPECT_THAT(result.out, HasSubstr("scripts/gpu_check.sh"));
    if (profile.empty() && gpu_is_here()) {
      EXPECT_TRUE(result.json.at("estimated_by").is_null());
      continue;
    }
    const std::string expected = profile.empty() ? "a100-80gb" : profile;
    EXPECT_EQ(result.json.at("estimated_by"), expected);
    EXPECT_THAT(result.out, HasSubstr("Estimated with the profile " + expected));
  }
}

TEST_F(TrainResnetTest, TrainingOnAGpuThatIsNotThereIsBadInput) {
  const Result profile = run("--device sim:a100-80gb --data synthetic --profile h100-80gb");
  EXPECT_EQ(profile.code, 2);
  EXPECT_THAT(profile.error, HasSubstr("--profile needs --device cuda and --dry-run"));
  if (gpu_is_here()) GTEST_SKIP() << "there is a GPU";
  for (const char* data : {"synthetic", "folder:/nowhere"}) {
    const Result result = run(std::string("--device cuda --data ") + data);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.error, HasSubstr("no CUDA device can be used: ")) << data;
  }
}

// CUDA's libraries take far more of the host's memory than the program does on a CPU.
TEST_F(TrainResnetTest, ADryRunForAGpuPromisesWhatItsLibrariesTake) {
  const std::string job = "--dry-run --data synthetic --batch 8 --host-limit 0 ";
  const auto program = [&](const std::string& device) {
    const Result result = run(job + device);
    EXPECT_EQ(result.code, 0) << result.error;
    EXPECT_EQ(result.json.at("process_promised_bytes"),
              result.json.at("loader_bytes").get<int64_t>() +
                  result.json.at("program_memory_bytes").get<int64_t>());
    return result.json.at("program_memory_bytes").get<int64_t>();
  };
  constexpr int64_t kGiB = int64_t{1} << 30;
  EXPECT_EQ(program("--device cuda --profile h200-141gb"), kGiB);
  EXPECT_EQ(program("--device sim:h200-141gb"), kGiB);
}

TEST_F(TrainResnetTest, TheProcessTakesItsPartsAndAConstant) {
  const Result result =
      run("--model resnet50 --data synthetic --batch 8 --image-size 128 --steps 2 --threads 2 "
          "--budget 50% --host-limit 1GiB");
  ASSERT_EQ(result.code, 0) << result.error;
  const auto bytes = [&](const char* name) { return result.json.at(name).get<int64_t>(); };
  const int64_t parts =
      bytes("budget_bytes") + bytes("host_peak_bytes") + bytes("loader_bytes");
  EXPECT_GT(parts, 2 * bytes("program_memory_bytes")) << "the figures say nothing";
  EXPECT_LE(bytes("process_peak_bytes"), parts + bytes("program_memory_bytes"));
}

TEST_F(TrainResnetTest, ABudgetOnACpuTakesLessOfTheProcess) {
  const std::string job = "--batch 8 --steps 3 --threads 2 --stem imagenet ";
  const Result free = run(job + "--policy none");
  ASSERT_EQ(free.code, 0) << free.error;
  EXPECT_EQ(free.json.at("process_unmanaged_bytes"), free.json.at("process_peak_bytes"));
  const Result half = run(job + "--budget 50%");
  ASSERT_EQ(half.code, 0) << half.error;
  EXPECT_EQ(half.json.at("params_checksum"), free.json.at("params_checksum"));
  const auto bytes = [&](const char* name) { return half.json.at(name).get<int64_t>(); };
  EXPECT_EQ(bytes("host_peak_bytes"), 0);
  EXPECT_GT(bytes("disk_peak_bytes"), 0);
  EXPECT_EQ(bytes("process_promised_bytes"),
            bytes("budget_bytes") + bytes("loader_bytes") + bytes("program_memory_bytes"));
  EXPECT_LE(bytes("process_peak_bytes"), bytes("process_promised_bytes"));
  const auto unmanaged = free.json.at("process_peak_bytes").get<int64_t>();
  EXPECT_LT(bytes("process_peak_bytes"), unmanaged - unmanaged / 8);
  EXPECT_THAT(half.out, HasSubstr(" written and "));
  EXPECT_THAT(half.out, HasSubstr("memory of the process"));
}

TEST_F(TrainResnetTest, TheDiskIsLeftAloneWhereRecomputingIsAsQuick) {
  const std::string job =
      "--model resnet50 --data synthetic --batch 16 --steps 1 --device sim:host ";
  const Result roomy = run(job + "--budget 70%");
  ASSERT_EQ(roomy.code, 0) << roomy.error;
  EXPECT_EQ(roomy.json.at("disk_limit_bytes"), 0);
  EXPECT_GT(roomy.json.at("steps").at(0).at("recomputes"), 0);
  const Result tight = run(job + "--budget 40%");
  ASSERT_EQ(tight.code, 0) << tight.error;
  EXPECT_GT(tight.json.at("disk_peak_bytes"), 0);
  const Result forbidden = run(job + "--budget 40% --disk-limit 0");
  ASSERT_EQ(forbidden.code, 0) << forbidden.error;
  EXPECT_EQ(forbidden.json.at("disk_peak_bytes"), 0);
  EXPECT_GT(forbidden.json.at("minimum_budget_bytes"), tight.json.at("minimum_budget_bytes"));
}

TEST_F(TrainResnetTest, TheProcessStaysWithinItsMemory) {
  const Result free = train("--policy none");
  const Result refused = train("--memory 100MiB");
  EXPECT_EQ(refused.code, 3);
  const int64_t least = number_after(" too little: training needs at least ", refused.error);
  ASSERT_GT(least, 0) << refused.error;
  EXPECT_EQ(train("--memory " + std::to_string(least - 1)).code, 3);
  const Result smallest = train("--memory " + std::to_string(least));
  expect_same_training(smallest, free);
  EXPECT_LE(smallest.json.at("process_promised_bytes"), least);
  EXPECT_LE(smallest.json.at("process_peak_bytes"), least);
  const Result ample = train("--memory 4GiB");
  ASSERT_EQ(ample.code, 0) << ample.error;
  EXPECT_TRUE(ample.json.at("budget_bytes").is_null());
  EXPECT_EQ(ample.json.at("peak_reserved_bytes"), ample.json.at("unmanaged_peak_bytes"));
  const Result all = train("--memory auto");
  ASSERT_EQ(all.code, 0) << all.error;
  EXPECT_THAT(all.out, HasSubstr("--memory auto: "));
}

TEST_F(TrainResnetTest, SameBitsWhateverTheMemory) {
  const Result free = train("--policy none");
  EXPECT_TRUE(free.json.at("budget_bytes").is_null());
  expect_same_under([&](const std::string& memory) { return train(memory); }, free,
                    {"--budget 100%", "--budget 70%", "--budget 50% --filter lru",
                     "--budget 50% --policy delta --filter greedy --repairs no-backward",
                     "--budget 40% --no-overlap", "--budget 40% --early-start off --prefetch 0",
                     "--budget 40% --host-limit 1GiB --disk-limit 0",
                     "--budget 40% --host-limit 1MiB --disk-limit 1GiB"});
}

TEST_F(TrainResnetTest, Bfloat16TakesLessMemoryAndTheSameBitsInAnyBudget) {
  TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  const std::string dry = "--dry-run --model resnet50 --data synthetic --batch 8 ";
  for (const std::string device : {"cpu", "sim:a100-80gb"}) {
    const Result wide = run(dry + "--device " + device);
    const Result narrow = run(dry + "--dtype bf16 --device " + device);
    ASSERT_EQ(narrow.code, 0) << narrow.error;
    EXPECT_EQ(wide.json.at("dtype"), "float32");
    EXPECT_EQ(narrow.json.at("dtype"), "bfloat16");
    EXPECT_LT(narrow.json.at("unmanaged_peak_bytes").get<double>(),
              0.75 * wide.json.at("unmanaged_peak_bytes").get<double>());
  }
  const Result free = train("--dtype bf16 --policy none");
  ASSERT_EQ(free.code, 0) << free.error;
  EXPECT_NE(loss_bits(free.json), loss_bits(train("--policy none").json));
  expect_same_training(train("--dtype bf16 --budget 50%"), free);
}

TEST_F(TrainResnetTest, AtTheUnmanagedPeakNothingIsReleased) {
  const Result result = train("--budget 100%");
  ASSERT_EQ(result.code, 0) << result.error;
  for (const Json& step : result.json.at("steps")) {
    EXPECT_EQ(step.at("evictions"), 0);
    EXPECT_EQ(step.at("offloads"), 0);
    EXPECT_EQ(step.at("recomputes"), 0);
  }
}

TEST_F(TrainResnetTest, EpochsWithASmallerLastBatchHaveTheirPeakForeseen) {
  const Result result = run("--image-size 8 --batch 400 --epochs 1 --threads 2 --policy none");
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.json.at("steps").size(), 4u);
  EXPECT_EQ(result.json.at("peak_reserved_bytes"), result.json.at("unmanaged_peak_bytes"));
  EXPECT_GT(result.json.at("eval").at("accuracy"), 0.0);
}

TEST_F(TrainResnetTest, OneByteUnderTheMinimumIsRefusedBeforeTraining) {
  expect_minimum_is_exact([this](const std::string& budget) { return train(budget); });
}

TEST_F(TrainResnetTest, ARefusalForWantOfATierNamesIt) {
  const Result refused = train("--budget 20% --disk-limit 5MiB");
  EXPECT_EQ(refused.code, 3);
  const int64_t disk = number_after("--disk-limit ", refused.error);
  ASSERT_GT(disk, 0) << refused.error;
  const Result done = train("--budget 20% --disk-limit " + std::to_string(disk));
  EXPECT_EQ(done.code, 0) << done.error;
}

TEST_F(TrainResnetTest, WhatFitsIntoItsMemoryIsLeftAlone) {
  const Result free = train("");
  ASSERT_EQ(free.code, 0) << free.error;
  const int64_t taken = free.json.at("process_peak_bytes");
  const int64_t memory = taken + (int64_t{64} << 20);
  const Result bounded = train("--memory " + std::to_string(memory));
  ASSERT_EQ(bounded.code, 0) << bounded.error;
  EXPECT_TRUE(bounded.json.at("budget_bytes").is_null());
  EXPECT_EQ(bounded.json.at("peak_reserved_bytes"), free.json.at("unmanaged_peak_bytes"));
  EXPECT_LE(bounded.json.at("process_promised_bytes"), memory);
  EXPECT_LE(bounded.json.at("process_peak_bytes"), bounded.json.at("process_promised_bytes"));
}

TEST_F(TrainResnetTest, WithoutManagementLessThanThePeakIsRefused) {
  const Result result = train("--policy none --budget 90%");
  EXPECT_EQ(result.code, 3);
  EXPECT_TRUE(result.json.at("steps").empty());
}

TEST_F(TrainResnetTest, MistakesEndWithCodeTwo) {
  EXPECT_EQ(run("--budget much").code, 2);
  EXPECT_EQ(run("--data imagenet").code, 2);
  EXPECT_EQ(run("--device tpu").code, 2);
  EXPECT_EQ(run("--device sim:abacus").code, 2);
  EXPECT_EQ(run("--dtype float16").code, 2);
  for (const char* flags :
       {"--resume", "--evaluate", "--accumulate 3", "--accumulate 0", "--clip nan",
        "--load /nowhere/file", "--save /nowhere/file", "--checkpoint /nowhere/file",
        "--device sim:host --save x", "--evaluate --load x --checkpoint y",
        "--evaluate --load x --steps 4", "--evaluate --load x --epochs 1",
        "--checkpoint-every 0"}) {
    EXPECT_EQ(run(flags).code, 2) << flags;
  }
  EXPECT_THAT(run("--evaluate --load x --steps 4").error, HasSubstr("leave out --steps"));
  const Result missing = run("--data mnist:" + path("none"));
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.error, HasSubstr("none"));
}

TEST_F(TrainResnetTest, DryRunReadsNoData) {
  const Result result = run("--dry-run --model resnet50 --data folder:/nowhere --batch 8");
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("activations"));
  EXPECT_TRUE(result.json.at("steps").empty());
}

TEST_F(TrainResnetTest, SimulatorHasTimesAndNoLosses) {
  const Result result =
      run("--device sim:a100-80gb --model resnet50 --data synthetic --batch 64 --steps 2 "
          "--budget 50%");
  expect_simulated(result, 2);
  EXPECT_TRUE(result.json.at("steps")[0].at("loss").is_null());
  EXPECT_GT(result.json.at("steps")[0].at("ms"), 0);
  EXPECT_LE(result.json.at("peak_reserved_bytes"), result.json.at("budget_bytes"));
}

TEST_F(TrainResnetTest, TraceIsJson) {
  const std::string trace = path("trace.json");
  ASSERT_EQ(train("--budget 50% --trace " + trace).code, 0);
  EXPECT_FALSE(Json::parse(read(trace)).at("traceEvents").empty());
}

TEST_F(TrainResnetTest, InterruptFinishesTheStepAndReports) {
  testing::RunningProgram program(
      TIDEMARK_TRAIN_RESNET,
      "--image-size 8 --batch 8 --steps 100000 --threads 2 --json " + path("run.json"));
  const std::string line = program.line();
  ASSERT_FALSE(line.empty());
  EXPECT_THAT(line, HasSubstr("step 1/100000"));
  program.send(SIGINT);
  const int status = program.wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const Json report = Json::parse(read(path("run.json")));
  EXPECT_GE(report.at("steps").size(), 1u);
  EXPECT_TRUE(report.at("params_checksum").is_string());
}

}  // namespace
}  // namespace tidemark
