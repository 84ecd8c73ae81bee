// Other implementations of backward operators, offered to the planner.
#include "runtime/planner/papers/remat/same_bit_variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/planner/remat/small_problems.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_parts.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// conv2d -> a, relu6 -> y, max_pool2d -> p and index; then their gradients, 2 ms each.
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
  op("relu6", {{a}}, {y});
  op("max_pool2d", {{y}}, {p, index});
  op("loss_grad", {{p}}, {gp});
  op("max_pool2d_grad", {{gp}, {index}}, {gy});
  op("relu6_grad", {{gy}, {y}}, {ga});
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
  EXPECT_EQ(made.offered, 2);
  ASSERT_EQ(nodes.size(), plain.problem.nodes.size());
  EXPECT_NO_THROW(check_problem(made.problem));
  EXPECT_EQ(nodes[3].rider_of, 2) << "pooling's index";
  EXPECT_THAT(inputs(nodes[5]), ElementsAre(ElementsAre(3, 4), ElementsAre(1, 4)));
  EXPECT_DOUBLE_EQ(nodes[5].variants[1].time, 2 * (8192.0 + 65536) / (8192 + 2048 + 32768));
  // From y, from x; each also in place of the gradient.
  EXPECT_THAT(inputs(nodes[6]), ElementsAre(ElementsAre(1, 5), ElementsAre(1, 5),
                                            ElementsAre(0, 5), ElementsAre(0, 5)));
  for (const size_t v : {1, 3}) EXPECT_EQ(nodes[6].variants[v].overwrites, 5) << v;
  EXPECT_DOUBLE_EQ(nodes[6].variants[2].time, 2);
}

// A schedule without them is one with them. Where y has to go while the loss is computed, its
// gradient from x takes one run again, from y two.
TEST(SameBitVariants, NeverTakeMoreAndSaveRuns) {
  StepTrace trace = step();
  trace.ops[4].workspace = Bytes(int64_t{3} * 32768);
  const StepProblem plain = problem_from_step(trace, {.in_place = false});
  const Problem more = add_same_bit_variants(trace, plain).problem;
  int feasible = 0, quicker = 0;
  const int64_t apart = testing::kSanitized ? 16384 : 1024;
  for (int64_t budget = 0; budget < int64_t{8} * 32768; budget += apart) {
    const double with = optimum(more, budget), without = optimum(plain.problem, budget);
    EXPECT_LE(with, without) << budget;
    feasible += with < kInfinite;
    quicker += with < without;
  }
  EXPECT_GT(feasible, 0);
  EXPECT_GT(quicker, 0);
}

// Only where the activation is a call of its own, and nothing else makes its value.
TEST(SameBitVariants, FollowTheMaker) {
  StepTrace trace = step();
  trace.ops[2].name = "batch_norm";
  EXPECT_EQ(add_same_bit_variants(trace, problem_from_step(trace)).offered, 1);
  trace.ops[5].name = "other";
  const StepProblem plain = problem_from_step(trace);
  const SameBitVariants none = add_same_bit_variants(trace, plain);
  EXPECT_EQ(none.offered, 0);
  EXPECT_EQ(none.problem.size(), plain.problem.size());
}

}  // namespace
}  // namespace tidemark::planner::remat
