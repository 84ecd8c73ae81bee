// Plans of real and random problems, checked by the validator, and wrong plans that the
// validator must reject.
#include "runtime/planner/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/io/layout_csv.h"
#include "runtime/planner/io/order_graph.h"
#include "runtime/planner/validator.h"
#include "tests/runtime/planner/least_height.h"

namespace tidemark::planner {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files(const std::string& folder, const std::string& ending) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(std::string(TIDEMARK_INSTANCES) + folder)) {
    if (entry.path().string().ends_with(ending)) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Buffer> random_buffers(std::mt19937& random, size_t count) {
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < count; ++i) {
    const int64_t begin = random() % 6;
    buffers.push_back({begin, begin + 1 + static_cast<int64_t>(random() % 4),
                       Bytes(1 + static_cast<int64_t>(random() % 5))});
  }
  return buffers;
}

TEST(LayoutTest, EveryInstanceAtItsBound) {
  const std::vector<std::string> all = files("/layout", ".csv");
  ASSERT_GE(all.size(), 10U);
  for (const std::string& file : all) {
    const LayoutInstance instance = parse_layout_csv(read_text_file(file), file);
    const Layout layout = plan_layout(instance.buffers, {.limits = {.seconds = 60}});
    EXPECT_EQ(layout.height, max_load(instance.buffers)) << file;
    EXPECT_EQ(layout_violations(instance.buffers, layout.offsets, layout.height),
              std::vector<std::string>{})
        << file;
  }
}

TEST(LayoutTest, AsLowAsTryingEverything) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Buffer> buffers = random_buffers(random, 2 + random() % 5);
    const Layout layout = plan_layout(buffers);
    EXPECT_EQ(layout.height, least_height(buffers)) << round;
    EXPECT_LE(layout.bound, layout.height);
    EXPECT_TRUE(layout_violations(buffers, layout.offsets, layout.height).empty()) << round;
  }
}

TEST(LayoutTest, TheSameEachTime) {
  std::mt19937 random(2);
  const std::vector<Buffer> buffers = random_buffers(random, 60);
  const LayoutOptions options{.limits = {.seconds = 60, .nodes = 10'000}};
  const Layout once = plan_layout(buffers, options);
  const Layout again = plan_layout(buffers, options);
  EXPECT_EQ(once.height, again.height);
  EXPECT_TRUE(std::equal(once.offsets.begin(), once.offsets.end(), again.offsets.begin()));
}

TEST(ValidatorTest, SeesABufferMovedOntoAnother) {
  const std::vector<Buffer> buffers{{0, 4, Bytes(10)}, {2, 6, Bytes(10)}};
  EXPECT_TRUE(layout_violations(buffers, {Offset(0), Offset(10)}, Bytes(20)).empty());
  EXPECT_FALSE(layout_violations(buffers, {Offset(0), Offset(9)}, Bytes(19)).empty());
  EXPECT_FALSE(layout_violations(buffers, {Offset(0), Offset(10)}, Bytes(19)).empty());
  EXPECT_FALSE(layout_violations(buffers, {Offset(0), Offset(11)}, Bytes(20)).empty());
}

// MODel's graphs of training steps.
TEST(PlannerTest, GraphsOfTrainingSteps) {
  for (const std::string name : {"alexnet_1_train", "mobilenet_1_train", "resnet18_1_train"}) {
    const std::string file = std::string(TIDEMARK_INSTANCES "/order/") + name + ".json.gz";
    for (const OrderInstance& instance : parse_order_graphs(read_text_file(file), file)) {
      const Plan plan = plan_step(instance.problem, {.limits = {.seconds = 20}});
      EXPECT_EQ(violations(instance.problem, plan), std::vector<std::string>{}) << file;
      EXPECT_LE(plan.bound, plan.peak);
      for (const Baseline& baseline : baselines()) {
        if (!baseline.quick) continue;
        const Plan other = baseline.plan(instance.problem);
        EXPECT_EQ(violations(instance.problem, other), std::vector<std::string>{})
            << baseline.name;
        EXPECT_LE(plan.peak, other.peak) << baseline.name << " of " << file;
      }
      Plan wrong = plan;
      std::swap(wrong.order.front(), wrong.order.back());
      EXPECT_FALSE(violations(instance.problem, wrong).empty());
      wrong = plan;
      wrong.peak = wrong.peak - Bytes(1);
      EXPECT_FALSE(violations(instance.problem, wrong).empty());
    }
  }
}

TEST(FilesTest, WhatIsWrongIsSaidWithItsPlace) {
  for (const std::string text :
       {"", "id,lower,upper\n", "id,lower,upper,size\na,0,3\n",
        "id,lower,upper,size\na,3,0,4\n", "id,lower,upper,size\na,0,3,-4\n",
        "id,lower,upper,size\na,0,3,4\na,0,3,4\n",
        "id,lower,upper,size\na,0,3,9223372036854775807\nb,0,3,9223372036854775807\n"}) {
    EXPECT_THROW(parse_layout_csv(text, "f.csv"), DataError) << text;
  }
  for (
      const std::string text :
      {"", "{", "{\"nodes\":1,\"edges\":[]}",
       R"({"nodes":[{"name":"a"}],"edges":[{"name":"e","size":1,"source":"a","sinks":["b"]}]})",
       R"({"nodes":[{"name":"a"},{"name":"a"}],"edges":[]})",
       R"({"nodes":[{"name":"a"},{"name":"b"}],"edges":[)"
       R"({"name":"e","size":1,"source":"a","sinks":["b"]},)"
       R"({"name":"f","size":1,"source":"b","sinks":["a"]}]})",
       R"({"nodes":[{"name":"a"},{"name":"b"}],"edges":[)"
       R"({"name":"e","size":-1,"source":"a","sinks":["b"]}]})"}) {
    EXPECT_THROW(parse_order_graphs(text, "g.json"), DataError) << text;
  }
}

}  // namespace
}  // namespace tidemark::planner
