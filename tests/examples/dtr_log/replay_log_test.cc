// The program as scripts use it.
#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "tests/support/program_test.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Result = testing::ProgramResult;

class ReplayLogTest : public testing::ProgramTest {
 protected:
  ReplayLogTest() : ProgramTest(TIDEMARK_REPLAY_LOG) {}
  static std::string log(const std::string& name) {
    return std::string(TIDEMARK_LOGS "/") + name + ".log ";
  }
};

TEST_F(ReplayLogTest, SaysWhatIsComputedAgain) {
  const Result run = this->run(log("diamond") + "--budget 4KiB --policy dtr");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.json.at("base_compute_ns"), 7200);
  EXPECT_EQ(run.json.at("total_compute_ns"), 8200);
  EXPECT_NEAR(run.json.at("overhead"), 8200.0 / 7200, 1e-9);
  EXPECT_EQ(run.json.at("recomputes"), 1);
  EXPECT_EQ(run.json.at("unmanaged_peak_bytes"), 6 << 10);
  EXPECT_THAT(run.out, HasSubstr("1.1389 times the log's"));
}

TEST_F(ReplayLogTest, AFilterNeedsAPolicyThatTakesOne) {
  EXPECT_EQ(run(log("linear") + "--budget 50% --policy delta --filter lru").code, 0);
  const Result run = this->run(log("linear") + "--budget 50% --policy dtr --filter lru");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.error, HasSubstr("--filter: 'dtr' takes no filter"));
}

TEST_F(ReplayLogTest, ABudgetMayBeAShare) {
  const Result run = this->run(log("linear") + "--budget 50% --policy lru");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.json.at("budget_bytes"), 33 << 20);
  EXPECT_GT(run.json.at("evictions"), 0);
}

TEST_F(ReplayLogTest, RunsUntilThePolicyHasSettled) {
  const Result tide = run(log("lstm") + "--budget 80%");
  ASSERT_EQ(tide.code, 0) << tide.error;
  EXPECT_GT(tide.json.at("planned_releases"), 0);
  EXPECT_THAT(tide.json.at("schedule").get<std::string>(), StartsWith("tide"));
  const Result lru = run(log("lstm") + "--budget 80% --policy lru");
  EXPECT_LT(lru.json.at("rounds"), tide.json.at("rounds"));
  EXPECT_EQ(run(log("lstm") + "--budget 80% --rounds 2").json.at("rounds"), 2);
}

TEST_F(ReplayLogTest, SaysWhenAnotherScheduleTakesOver) {
  const Result run = this->run(log("resnet") + "--budget 50% --policy lru");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.json.at("policy"), "lru");
  EXPECT_NE(run.json.at("schedule"), "lru");
  EXPECT_THAT(run.out, HasSubstr("runs out of memory"));
}

TEST_F(ReplayLogTest, MistakesAreExplained) {
  const Result small = run(log("diamond") + "--budget 3KiB");
  EXPECT_EQ(small.code, 3);
  EXPECT_THAT(small.error, HasSubstr("4.0 KiB"));
  EXPECT_EQ(small.json.at("budget_bytes"), 3 << 10);
  EXPECT_EQ(run(log("diamond") + "--plan auto").code, 2);
  EXPECT_EQ(run(log("nothing")).code, 2);
  EXPECT_EQ(run(log("diamond") + "--policy nothing").code, 2);
  EXPECT_EQ(run(log("diamond") + "--profile nothing").code, 2);
  const std::string bad = (folder_ / "bad.log").string();
  std::ofstream(bad) << "\n{\"INSTRUCTION\": \"CALL\"}\n";
  const Result result = run(bad);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, HasSubstr("line 2"));
}

}  // namespace
}  // namespace tidemark
