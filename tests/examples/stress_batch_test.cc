// The program as scripts use it: the answer, that it is one, the soak, and mistakes.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/support/program_test.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using testing::Json;
using ::testing::Not;

const std::string kOneGiB =
    "--model resnet18 --image-size 64 --device sim:v100-16gb --budget 1GiB ";

class StressBatchTest : public testing::ProgramTest {
 protected:
  StressBatchTest() : ProgramTest(TIDEMARK_STRESS_BATCH) {}

  // Two runs that succeed: without `flag`, then with it.
  std::pair<Result, Result> with_and_without(const std::string& flag,
                                             const std::string& prove) {
    const std::string same = kOneGiB + prove;
    std::pair<Result, Result> runs{run(same), run(same + flag)};
    EXPECT_EQ(runs.first.code, 0) << runs.first.error;
    EXPECT_EQ(runs.second.code, 0) << runs.second.error;
    return runs;
  }
};

int64_t count(const Json& json, const std::string& kind) {
  int64_t found = 0;
  for (const Json& trial : json.at("trials")) found += trial.at("kind") == kind;
  return found;
}

TEST_F(StressBatchTest, TheAnswerFitsAndOneMoreDoesNot) {
  const Result run = this->run(kOneGiB + "--prove 3");
  ASSERT_EQ(run.code, 0) << run.error;
  const int64_t batch = run.json.at("batch"), budget = run.json.at("budget_bytes");
  EXPECT_EQ(budget, 1 << 30);
  EXPECT_LE(run.json.at("peak_reserved_bytes"), budget);
  EXPECT_LE(run.json.at("minimum_budget_bytes"), budget);
  EXPECT_GT(batch, run.json.at("unmanaged_batch").get<int64_t>());
  EXPECT_EQ(run.json.at("steps").size(), 3u);
  bool too_large = false, proven = false;
  for (const Json& trial : run.json.at("trials")) {
    if (trial.at("kind") == "dry-run" && trial.at("batch") == batch + 1) {
      EXPECT_GT(trial.at("minimum_budget_bytes"), budget);
      too_large = true;
    }
    proven = proven || (trial.at("kind") == "simulated" && trial.at("batch") == batch &&
                        trial.at("fits") == true);
  }
  EXPECT_TRUE(too_large && proven);
  EXPECT_THAT(run.out, HasSubstr("largest batch " + std::to_string(batch)));
  EXPECT_THAT(run.out, HasSubstr("\n  simulated "));
  EXPECT_THAT(run.out, Not(HasSubstr("\n  real ")));
}

TEST_F(StressBatchTest, AMarginIsLeftFree) {
  const auto [all, less] = with_and_without("--margin 0.25", "--prove 1 ");
  EXPECT_LE(less.json.at("peak_reserved_bytes"), 3 << 28);
  EXPECT_LT(less.json.at("batch"), all.json.at("batch"));
}

TEST_F(StressBatchTest, WhatIsTooSlowIsNoAnswer) {
  const auto [any, fast] = with_and_without("--least-speed 0.9", "--prove 20 ");
  EXPECT_LT(fast.json.at("batch"), any.json.at("batch"));
  EXPECT_GE(fast.json.at("batch"), fast.json.at("unmanaged_batch"));
  const double speed = fast.json.at("per_second"),
               before = fast.json.at("unmanaged_per_second");
  EXPECT_GE(speed, 0.85 * before);
}

TEST_F(StressBatchTest, WithoutManagementItIsTheLargestThatFits) {
  const Result run = this->run(kOneGiB + "--prove 1 --policy none");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.json.at("batch"), run.json.at("unmanaged_batch"));
  EXPECT_EQ(count(run.json, "dry-run"), 0);
}

TEST_F(StressBatchTest, TrainsInEarnestAndSoaks) {
  const Result run = this->run(
      "--model bert-tiny --vocab-size 200 --seq-length 32 --budget 14MiB --largest 12 "
      "--threads 2 --prove 4 --soak-steps 20");
  ASSERT_EQ(run.code, 0) << run.out << run.error;
  EXPECT_GT(run.json.at("batch"), 0);
  EXPECT_EQ(run.json.at("params_checksum").is_string(), true);
  const Json& soak = run.json.at("soak");
  EXPECT_EQ(soak.at("steps"), 20);
  EXPECT_EQ(soak.at("out_of_memory"), 0);
  EXPECT_LE(soak.at("peak_reserved_bytes"), run.json.at("budget_bytes"));
  EXPECT_EQ(soak.at("first_tenth").at("storages"), soak.at("last_tenth").at("storages"));
  EXPECT_THAT(run.out, HasSubstr("memory is flat, as far as 20 steps show"));
  EXPECT_THAT(run.out, HasSubstr("\n  real "));
}

// The arena of the largest batch is what --memory leaves beside its data and the program.
TEST_F(StressBatchTest, TheWholeProcessMayBeBounded) {
  const int64_t memory = 272 << 20, program = 192 << 20;
  for (const char* network : {"--model resnet18 --image-size 64 --stem cifar",
                              "--model bert-tiny --vocab-size 200 --seq-length 64"}) {
    const Result run =
        this->run(std::string(network) + " --memory 272MiB --largest 64 --threads 2 --prove 2");
    ASSERT_EQ(run.code, 0) << network << run.out << run.error;
    EXPECT_THAT(run.out, HasSubstr("the process takes at most 272.0 MiB")) << network;
    const int64_t budget = run.json.at("budget_bytes"), data = run.json.at("loader_bytes"),
                  peak = run.json.at("unmanaged_peak_bytes"),
                  promised = run.json.at("process_promised_bytes");
    EXPECT_GT(data, 0) << network;
    EXPECT_EQ(promised - program - std::min(budget, peak), data) << network;
    EXPECT_LE(promised, memory) << network;
    if (budget < peak) {
      EXPECT_LT(memory - promised, 512) << network;
    }
    EXPECT_LE(run.json.at("process_peak_bytes"), promised) << network;
  }
}

TEST_F(StressBatchTest, AMarginIsLeftFreeOfTheProcessToo) {
  const Result run = this->run(
      "--model resnet18 --image-size 64 --device sim:host --memory 1GiB --margin 0.25 --prove "
      "1");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_LE(run.json.at("process_promised_bytes"), 3 << 28);
}

TEST_F(StressBatchTest, OnADeviceTheProcessIsTheHostsSide) {
  const Result run = this->run(kOneGiB + "--memory 1280MiB --prove 1");
  ASSERT_EQ(run.code, 0) << run.error;
  const int64_t budget = run.json.at("budget_bytes");
  EXPECT_LE(budget, 1 << 30);
  EXPECT_GT(budget, 3 << 28) << "of the process, 256 MiB would be left";
  EXPECT_LE(run.json.at("host_limit_bytes"), 256 << 20);
  EXPECT_LE(run.json.at("process_promised_bytes"), 1280 << 20);
  const Result all = this->run(kOneGiB + "--prove 1");
  EXPECT_LT(run.json.at("batch"), all.json.at("batch"));
}

TEST_F(StressBatchTest, TooLittleForTheProcessIsRefusedWithWhatWouldDo) {
  const std::string same =
      "--model resnet18 --image-size 64 --device sim:host --largest 1 --prove 1 --memory ";
  const Result run = this->run(same + "193MiB");
  EXPECT_EQ(run.code, 3);
  const std::string before = "is too little: training needs at least ";
  ASSERT_THAT(run.error, HasSubstr("--memory: 193.0 MiB " + before));
  const int64_t least = std::stoll(run.error.substr(run.error.find(before) + before.size()));
  EXPECT_EQ(this->run(same + std::to_string(least)).code, 0);
  EXPECT_EQ(this->run(same + std::to_string(least - 1)).code, 3);
}

TEST_F(StressBatchTest, TakesEveryNetworkOfTheTrainingPrograms) {
  EXPECT_EQ(run("--model xlm-roberta-base --vocab-size 500 --seq-length 16 --device sim:host "
                "--budget 10GiB --largest 1 --prove 1")
                .code,
            0);
}

TEST_F(StressBatchTest, NotEvenOneFits) {
  const std::string same = "--model resnet50 --device sim:a100-80gb --largest 1 --prove 1 ";
  const Result run = this->run(same + "--budget 1MiB");
  EXPECT_EQ(run.code, 3);
  const int64_t least = run.json.at("minimum_budget_bytes");
  EXPECT_GT(least, 1 << 20);
  EXPECT_THAT(run.error, HasSubstr(std::to_string(least)));
  EXPECT_EQ(this->run(same + "--budget " + std::to_string(least)).code, 0);
  EXPECT_EQ(this->run(same + "--budget " + std::to_string(least - 512)).code, 3);
}

TEST_F(StressBatchTest, MistakesAreExplained) {
  EXPECT_EQ(run("--model resnet18").code, 2);  // of a CPU's memory it takes what it is told
  EXPECT_THAT(run("--model resnet18").error, HasSubstr("--budget"));
  EXPECT_EQ(run("--model resnet18 --batch 4 --device sim:host").code, 2);
  const Result unknown = run("--model nothing --device sim:host");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.error, HasSubstr("no network 'nothing'. For images: "));
  EXPECT_THAT(unknown.error, HasSubstr("bert-tiny"));
  EXPECT_EQ(run("--model gpt2 --task mlm --device sim:host").code, 2);
  EXPECT_EQ(run("--device sim:nothing").code, 2);
  for (const char* flag : {"--margin", "--least-speed", "--minutes"}) {
    EXPECT_THAT(run(flag + std::string(" nan --device sim:host")).error,
                HasSubstr("not a finite float32 number"))
        << flag;
  }
}

}  // namespace
}  // namespace tidemark
