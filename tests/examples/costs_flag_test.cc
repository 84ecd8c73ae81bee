// --save-costs and --costs: a real run and a simulated one do the same.
#include <gmock/gmock.h>

#include <string>

#include "tests/examples/train_resnet.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;

class CostsFlagTest : public testing::TrainResnet {
 protected:
  static Json actions(const Json& run) {
    Json found = Json::array();
    for (const Json& step : run.at("steps")) {
      Json one;
      for (const char* key : {"evictions", "offloads", "clean_drops", "reloads", "prefetches",
                              "recomputes", "compactions", "evicted_bytes", "offload_bytes",
                              "reload_bytes", "peak_reserved_bytes", "peak_live_bytes"}) {
        one[key] = step.at(key);
      }
      found.push_back(one);
    }
    return found;
  }
};

TEST_F(CostsFlagTest, ARealRunAndASimulatedOneDoTheSame) {
  const std::string costs = path("costs.json");
  const std::string same =
      "--data synthetic --image-size 96 --batch 8 --steps 6 --threads 2 --budget 40% --stem "
      "imagenet ";
  const Result measured = run(same + "--save-costs " + costs);
  ASSERT_EQ(measured.code, 0) << measured.error;
  const Json table = Json::parse(read(costs));
  EXPECT_EQ(table.at("device"), "cpu");
  EXPECT_GT(table.at("operators").size(), 50u);

  const Result real = run(same + "--costs " + costs);
  const Result simulated = run(same + "--device sim:host --costs " + costs);
  ASSERT_EQ(real.code, 0) << real.error;
  ASSERT_EQ(simulated.code, 0) << simulated.error;
  EXPECT_EQ(actions(real.json), actions(simulated.json));
  EXPECT_GT(real.json.at("steps").at(5).at("evictions").get<int64_t>() +
                real.json.at("steps").at(5).at("offloads").get<int64_t>(),
            0);
  EXPECT_EQ(real.json.at("params_checksum"), measured.json.at("params_checksum"));
}

TEST_F(CostsFlagTest, MistakesAreExplained) { expect_files_are_checked("costs"); }

}  // namespace
}  // namespace tidemark
