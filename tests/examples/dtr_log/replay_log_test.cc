// The program as scripts use it.
#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "tests/support/program_test.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using Result = testing::ProgramResult;

class ReplayLogTest : public testing::ProgramTest {
 protected:
  ReplayLogTest() : ProgramTest(TIDEMARK_REPLAY_LOG) {}
  static std::string log(const std::string& name) {
    return std::string(TIDEMARK_LOGS) + "/" + name + ".log ";
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
  EXPECT_THAT(run.out, HasSubstr("1.1389 of the log's"));
}

TEST_F(ReplayLogTest, ABudgetMayBeAShare) {
  const Result run = this->run(log("linear") + "--budget 50% --policy lru");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.json.at("budget_bytes"), 33 << 20);
  EXPECT_GT(run.json.at("evictions"), 0);
}

TEST_F(ReplayLogTest, MistakesAreExplained) {
  EXPECT_EQ(run(log("diamond") + "--budget 3KiB").code, 3);
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
