// Other implementations of backward operators, offered to the planner.
#include "runtime/planner/papers/remat/same_bit_variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/planner/remat/small_problems.h"
#include "tests/support/trace_parts.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// conv2d -> a, relu -> y, max_pool2d -> p and index; then their gradients, 2 ms each.
StepTrace step() {
  StepTrace trace;
  const auto storage = [&](int64_t size, bool persistent = false) {
    return testing::add_storage(trace, size, persistent);
  };
  const auto op = [&](const char* name, std::vector<StepTrace::Input> inputs,
                      std::vector<uint32_t> outputs) {
    testing::add_op(trace, StepTrace::Kind::kCall, name, std::move(inputs), std::move(outputs));
  };
  constexpr int64_t kLarge = 32768;
  const uint32_t data = storage(512), w = storage(512, true), a = storage(kLarge),
                 y = storage(kLarge), p = storage(kLarge / 4), index = storage(kLarge / 16),
                 gp = storage(kLarge / 4), gy = storage(kLarge), ga = storage(kLarge),
                 dw = storage(512);
  op("upload", {}, {data});
  trace.ops[0].kind = StepTrace::Kind::kUpload;
  op("conv2d", {{data}, {w}}, {a});
  op("relu", {{a}}, {y});
  op("max_pool2d", {{y}}, {p, index});
  op("loss_grad", {{p}}, {gp});
  op("max_pool2d_grad", {{gp}, {index}}, {gy});
  op("relu_mask", {{gy}, {y}}, {ga});
  trace.ops.back().may_overwrite = {gy};
  trace.ops.back().released = {gy};
  op("conv2d_grad_weight", {{ga}, {data}}, {dw});
  op("update_", {{w, 0, true}, {dw}}, {});
  return trace;
}

std::vector<std::vector<NodeId>> inputs(const Node& node) {
  std::vector<std::vector<NodeId>> all;
  for (const Variant& variant : node.variants) all.push_back(variant.inputs);
  return all;
}

TEST(SameBitVariants, AreOffered) {
  const StepTrace trace = step();
  const StepProblem plain = problem_from_step(trace);
  const SameBitVariants made = add_same_bit_variants(trace, plain);
  const std::vector<Node>& nodes = made.problem.nodes;
  EXPECT_EQ(made.offered, 2) << "signs, and pooling's input";
  ASSERT_EQ(nodes.size(), plain.problem.nodes.size() + 1);
  EXPECT_NO_THROW(check_problem(made.problem));
  EXPECT_EQ(nodes[2].name, "relu.2.signs");
  EXPECT_EQ(nodes[2].rider_of, 1);
  EXPECT_EQ(nodes[2].bytes, 1024);
  EXPECT_EQ(nodes[4].rider_of, 3) << "pooling's index";
  EXPECT_THAT(inputs(nodes[6]), ElementsAre(ElementsAre(4, 5), ElementsAre(1, 5)));
  EXPECT_DOUBLE_EQ(nodes[6].variants[1].time, 2 * (8192.0 + 65536) / (8192 + 2048 + 32768));
  // From y, from signs; each also in place of the gradient.
  EXPECT_THAT(inputs(nodes[7]), ElementsAre(ElementsAre(1, 6), ElementsAre(1, 6),
                                            ElementsAre(2, 6), ElementsAre(2, 6)));
  for (const size_t v : {1, 3}) EXPECT_EQ(nodes[7].variants[v].overwrites, 6) << v;
  EXPECT_DOUBLE_EQ(nodes[7].variants[2].time, 2 * (65536.0 + 1024) / 98304);
  EXPECT_THAT(nodes[9].after, ElementsAre(0)) << "the update, behind the convolution";
}

// With y read by its gradient, three large values are live there; with its signs, two.
TEST(SameBitVariants, SaveMemory) {
  const StepTrace trace = step();
  const StepProblem plain = problem_from_step(trace, {.in_place = false});
  const Problem more = add_same_bit_variants(trace, plain).problem;
  const int64_t least = 2 * 32768 + 1024 + plain.problem.fixed_bytes;
  EXPECT_EQ(optimum(plain.problem, least + 31743), kInfinite);
  EXPECT_EQ(optimum(plain.problem, least + 31744), 16);
  EXPECT_EQ(optimum(more, least - 1), kInfinite);
  EXPECT_DOUBLE_EQ(optimum(more, least),
                   14 + 2 * (65536.0 + 1024) / 98304 + 2 * (32768.0 + 1024) / 98304);
}

// Where the activation is a part of another operator, there is no x.
TEST(SameBitVariants, FollowTheMaker) {
  StepTrace trace = step();
  trace.ops[2].name = "batch_norm";
  EXPECT_EQ(add_same_bit_variants(trace, problem_from_step(trace)).offered, 2);
  trace.ops[6].name = "relu6_grad";
  EXPECT_EQ(add_same_bit_variants(trace, problem_from_step(trace)).offered, 1)
      << "two bounds, so signs do not suffice";
  trace.ops[2].name = "relu6";
  EXPECT_EQ(add_same_bit_variants(trace, problem_from_step(trace)).offered, 2);
  trace.ops[5].name = trace.ops[6].name = "other";
  const StepProblem plain = problem_from_step(trace);
  const SameBitVariants none = add_same_bit_variants(trace, plain);
  EXPECT_EQ(none.offered, 0);
  EXPECT_EQ(none.problem.size(), plain.problem.size());
}

}  // namespace
}  // namespace tidemark::planner::remat
