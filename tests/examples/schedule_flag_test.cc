// --save-schedule and --schedule: a training goes by the schedule of another.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/examples/train_resnet.h"

namespace tidemark {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// Costs are given, so that sessions wait for schedules and all repeats. In another order it
// fits into the budget, so that no trial has to be won.
class ScheduleFlagTest : public testing::TrainResnet {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    const std::string costs = path("costs.json");
    const std::string small = std::string(kSmall) + "--batch 16 ";
    EXPECT_EQ(run(small + kBudget + "--steps 2 --save-costs " + costs).code, 0);
    same_but_budget_ = small + "--steps 5 --costs " + costs + " ";
    same_ = same_but_budget_ + kBudget;
  }

  // Synthetic images, as there are none to test with at the end.
  static constexpr const char *kSmall = "--data synthetic --image-size 16 --threads 2 ",
                              *kBudget = "--budget 95% ";
  std::string same_, same_but_budget_;
};

TEST_F(ScheduleFlagTest, ATrainingGoesByTheScheduleOfAnother) {
  const Result first = run(same_ + "--save-schedule " + path("schedule.json"));
  ASSERT_EQ(first.code, 0) << first.error;
  ASSERT_GT(first.json.at("plan").at("steps"), 0);
  const Json schedule = Json::parse(read(path("schedule.json")));
  EXPECT_EQ(schedule.at("format"), "tidemark schedule");

  const Result second = run(same_ + "--schedule " + path("schedule.json") +
                            " --save-schedule " + path("schedule.json"));
  ASSERT_EQ(second.code, 0) << second.error;
  EXPECT_THAT(second.error, HasSubstr("steps now follow the given plan"));
  EXPECT_THAT(second.error, ContainsRegex("step 5/5 [^\n]*  planned\n"));
  EXPECT_GT(second.json.at("plan").at("steps"), 0);
  EXPECT_EQ(second.json.at("plan").at("mismatches"), 0);
  EXPECT_EQ(second.json.at("plan").at("schedule"), first.json.at("plan").at("schedule"));
  EXPECT_EQ(second.json.at("params_checksum"), first.json.at("params_checksum"));
  EXPECT_EQ(Json::parse(read(path("schedule.json"))), schedule);
}

TEST_F(ScheduleFlagTest, WhereItDoesNotDoThePolicyDecides) {
  const Result first = run(same_ + "--save-schedule " + path("schedule.json"));
  ASSERT_EQ(first.code, 0) << first.error;

  const Result other = run(same_ + "--optimizer adam --schedule " + path("schedule.json"));
  EXPECT_EQ(other.code, 0) << other.error;
  EXPECT_THAT(other.error, HasSubstr("is a schedule for a different step"));
  EXPECT_EQ(other.json.at("plan").at("steps"), 0);

  // The first upload comes last.
  Json schedule = Json::parse(read(path("schedule.json")));
  std::swap(schedule.at("code").front(), schedule.at("code").back());
  const std::string written = write("swapped.json", schedule.dump());
  const Result swapped = run(same_ + "--schedule " + written);
  EXPECT_EQ(swapped.code, 0) << swapped.error;
  EXPECT_THAT(swapped.error, HasSubstr("the given schedule is not valid here: "));
  EXPECT_EQ(swapped.json.at("plan").at("steps"), 0);
  EXPECT_EQ(swapped.json.at("params_checksum"), first.json.at("params_checksum"));
}

// plan_graph plans the step of a saved schedule anew, for less memory; the training then
// follows that.
TEST_F(ScheduleFlagTest, ATrainingGoesByRematerialisation) {
  const Result first = run(same_ + "--save-schedule " + path("first.json"));
  ASSERT_EQ(first.code, 0) << first.error;
  const std::string plan = std::string(TIDEMARK_PLAN_GRAPH " ") + path("first.json");
  const auto quietly = [&](const std::string& arguments) {
    return std::system((plan + arguments + " > " + path("said") + " 2>&1").c_str());
  };
  ASSERT_EQ(quietly(" --write-remat " + path("step.json")), 0) << read(path("said"));
  const Json budgets = Json::parse(read(path("step.json"))).at("budgets");
  const std::string within =
      " --budget " + std::to_string(budgets[1].at("bytes").get<int64_t>());
  ASSERT_EQ(quietly(within + " --method default --deadline 3 --save-schedule " +
                    path("schedule.json")),
            0)
      << read(path("said"));
  const Result limited =
      run(same_but_budget_ + within + " --schedule " + path("schedule.json"));
  expect_same_training(limited, first);
  EXPECT_THAT(limited.error, HasSubstr("steps now follow the given plan"));
  EXPECT_GT(limited.json.at("plan").at("steps"), 0);
  EXPECT_EQ(limited.json.at("plan").at("mismatches"), 0);
}

TEST_F(ScheduleFlagTest, MistakesAreExplained) {
  expect_files_are_checked("schedule");
  const std::pair<const char*, const char*> reasons[] = {
      {"--steps 1", "fits in the budget, so nothing is planned; give a --budget below"},
      {"--steps 1 --budget 60% --plan off", "policy tide decides in every step"},
      {"--steps 1 --budget 60%", "the last steps ran under the policy"},
  };
  for (const auto& [flags, why] : reasons) {
    const Result none =
        run(kSmall + (flags + (" --batch 2 --save-schedule " + path("none.json"))));
    EXPECT_EQ(none.code, 2) << flags;
    EXPECT_THAT(none.error, HasSubstr(why)) << flags;
    EXPECT_THAT(none.out, HasSubstr("memory of the arena")) << "the table comes all the same";
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none.json"));
  }
  const Result packed =
      run(std::string(kSmall) + "--steps 1 --save-schedule " + path("schedule.json.gz"));
  EXPECT_EQ(packed.code, 2);
  EXPECT_THAT(packed.error, HasSubstr("would not be compressed; leave out .gz"));
}

}  // namespace
}  // namespace tidemark
