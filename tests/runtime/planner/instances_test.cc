// Peaks that the planner reaches on the problems in data/instances. Budgets are in nodes, so
// that results are the same everywhere.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/text_file.h"
#include "runtime/planner/io/layout_csv.h"
#include "runtime/planner/io/order_graph.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/validator.h"

namespace tidemark::planner {
namespace {

const std::string kFolder = TIDEMARK_INSTANCES;

TEST(LayoutInstancesTest, AllAtTheirBound) {
  for (const std::string name :
       {"iopddl-G_1", "minimalloc-A", "minimalloc-C", "minimalloc-F", "minimalloc-H",
        "minimalloc-K", "somas-resnet50", "tflm-TestGreedyMedium", "tflm-TestOverlapCase",
        "tflm-TestPersonDetectionModel", "tvm-alloc_max", "tvm-deep_speech", "tvm-five",
        "tvm-simple"}) {
    const std::string path = kFolder + "/layout/" + name + ".csv";
    const LayoutInstance instance = parse_layout_csv(read_text_file(path), path);
    LayoutOptions options;
    options.limits.nodes = 1'000'000;
    options.limits.seconds = 1e6;
    const Layout layout = plan_layout(instance.buffers, options);
    EXPECT_EQ(layout.height, max_load(instance.buffers)) << name;
    EXPECT_TRUE(layout_violations(instance.buffers, layout.offsets, layout.height).empty());
  }
}

// MiniMalloc's five with changes that keep a layout of a mebibyte: time reversed, time
// stretched unevenly, and some buffers ended earlier, in the opposite order.
TEST(LayoutInstancesTest, VariantsFitToo) {
  constexpr Bytes kCapacity{1 << 20};
  for (const std::string name : {"A", "C", "F", "H", "K"}) {
    const std::string path = kFolder + "/layout/minimalloc-" + name + ".csv";
    const std::vector<Buffer> given = parse_layout_csv(read_text_file(path), path).buffers;
    std::vector<Buffer> reversed, stretched, shortened;
    for (size_t i = 0; i < given.size(); ++i) {
      const auto& [begin, end, size] = given[i];
      reversed.push_back({-end, -begin, size});
      stretched.push_back({begin * (begin / 5), end * (end / 5), size});
      shortened.insert(shortened.begin(),
                       {begin, i % 10 == 0 ? end - (end - begin) / 5 : end, size});
    }
    std::vector variants = {reversed, stretched};
    if (name != "K") variants.push_back(shortened);  // this one takes longer
    for (const std::vector<Buffer>& buffers : variants) {
      LayoutOptions options;
      options.target = kCapacity;
      options.limits.nodes = 10'000;
      options.limits.seconds = 1e6;
      const Layout layout = plan_layout(buffers, options);
      EXPECT_LE(layout.height, kCapacity) << name;
      EXPECT_TRUE(layout_violations(buffers, layout.offsets, layout.height).empty());
    }
  }
}

OrderOptions order_options() {
  OrderOptions options;
  options.limits.nodes = 2'000'000;
  options.limits.seconds = 1e6;
  return options;
}

TEST(OrderInstancesTest, HandWrittenGraphsAtTheirLeastPeak) {
  const std::string text = read_text_file(kFolder + "/order/native_graphs.json");
  const nlohmann::json json = nlohmann::json::parse(text);
  const auto instances = parse_order_graphs(text, "native_graphs.json");
  ASSERT_EQ(instances.size(), 12U);
  for (size_t i = 0; i < instances.size(); ++i) {
    const Order order = plan_order(instances[i].problem, order_options());
    EXPECT_EQ(order.load.count(), json[i]["order_only"]["peak"].get<double>())
        << instances[i].name;
    EXPECT_EQ(order.bound, order.load) << instances[i].name;
  }
}

TEST(OrderInstancesTest, TrainingStepsAtOrBelowThePublishedPeaks) {
  for (const std::string name : {"alexnet_1", "alexnet_32", "mobilenet_1", "resnet18_1",
                                 "resnet50_1", "squeezenet_1", "transformer_1"}) {
    const std::string path = kFolder + "/order/" + name + "_train.json.gz";
    const std::string text = read_text_file(path);
    const auto published =
        static_cast<int64_t>(nlohmann::json::parse(text)["olla_cbc_peak"].get<double>());
    for (const Parameters parameters : {Parameters::kAsNodes, Parameters::kResident}) {
      const OrderInstance instance = parse_order_graphs(text, path, parameters)[0];
      const Order order = plan_order(instance.problem, order_options());
      EXPECT_LE(order.load.count(), published) << name;
      EXPECT_LE((order.load - order.bound).count(), order.bound.count() / 200) << name;
      EXPECT_EQ(peak_load(instance.problem, order.order), order.load);
    }
    PlannerOptions options;
    options.limits = order_options().limits;
    const Problem problem = parse_order_graphs(text, path, Parameters::kResident)[0].problem;
    const Plan plan = plan_step(problem, options);
    EXPECT_TRUE(violations(problem, plan).empty()) << name;
    EXPECT_EQ(plan.peak, plan.load) << name << ": fragmentation";
  }
}

}  // namespace
}  // namespace tidemark::planner
