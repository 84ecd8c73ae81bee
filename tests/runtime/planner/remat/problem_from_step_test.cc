// Captured steps as rematerialisation problems.
#include "runtime/planner/remat/problem_from_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/planner/io/remat_json.h"
#include "runtime/planner/io/remat_problem_json.h"
#include "runtime/planner/papers/remat/two_pass.h"
#include "tests/runtime/planner/papers/training_problems.h"
#include "tests/support/trace_parts.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Parameters w and g, which a last operator updates; an upload; two layers; the gradient of the
// first makes dx and dg, which waits for the update.
StepTrace step() {
  using Kind = StepTrace::Kind;
  StepTrace trace;
  const auto storage = [&](int64_t size, bool persistent = false) {
    return testing::add_storage(trace, size, persistent);
  };
  const auto op = [&](Kind kind, const char* name, std::vector<StepTrace::Input> inputs,
                      std::vector<uint32_t> outputs) {
    testing::add_op(trace, kind, name, std::move(inputs), std::move(outputs));
  };
  const uint32_t data = storage(100), w = storage(40, true), g = storage(4, true),
                 x = storage(30), statistics = storage(2), y = storage(20), dx = storage(30),
                 dg = storage(4), dw = storage(40);
  op(Kind::kUpload, "upload", {}, {data});
  op(Kind::kCall, "norm", {{data}, {g}}, {x, statistics});
  op(Kind::kCall, "conv", {{x}, {w}}, {y});
  op(Kind::kCall, "scale_", {{y, 0, true}}, {});
  op(Kind::kCall, "conv_grad", {{y, 1}, {x}}, {dx, dw});
  op(Kind::kCall, "norm_grad", {{dx}, {x}, {statistics}}, {dg});
  op(Kind::kCall, "update_", {{w, 0, true}, {g, 0, true}, {dw}, {dg}}, {});
  op(Kind::kRead, "read", {{y, 1}}, {});
  return trace;
}

TEST(ProblemFromStep, HasANodeForEachCall) {
  const StepProblem made = problem_from_step(step());
  const auto& nodes = made.problem.nodes;
  EXPECT_EQ(made.problem.fixed_bytes, 144);
  EXPECT_THAT(made.op_of, ElementsAre(1, 2, 3, 4, 4, 5, 6, 7)) << "two nodes for conv_grad";
  EXPECT_EQ(nodes[0].name, "norm.1");
  EXPECT_EQ(nodes[0].bytes, 32) << "statistics are read as long as x";
  EXPECT_EQ(nodes[0].variants[0].time, 2);
  EXPECT_THAT(nodes[1].variants[0].inputs, ElementsAre(0));
  // In place: a new value in the space of the old one.
  EXPECT_TRUE(nodes[2].once);
  EXPECT_EQ(nodes[2].variants[0].overwrites, 1);
  EXPECT_EQ(nodes[2].variants[0].workspace, -20);
  EXPECT_EQ(nodes[2].bytes, 20);
  EXPECT_THAT(nodes[3].variants[0].inputs, ElementsAre(0, 2));
  // The update and the read.
  EXPECT_TRUE(nodes[6].required && nodes[6].once);
  EXPECT_EQ(nodes[6].bytes, 0);
  EXPECT_TRUE(nodes[7].required);
  EXPECT_TRUE(nodes[7].required && nodes[7].once);
}

// The update comes after what reads w and g, the write of y after what made y, the read after
// the last calls before it.
TEST(ProblemFromStep, WritesComeAfterReaders) {
  const auto nodes = problem_from_step(step()).problem.nodes;
  EXPECT_THAT(nodes[2].after, ElementsAre(1));
  EXPECT_THAT(nodes[6].after, ElementsAre(0, 1));
  EXPECT_THAT(nodes[7].after, ElementsAre(2, 6));
  for (const int i : {0, 1, 3, 4, 5}) EXPECT_THAT(nodes[i].after, IsEmpty()) << i;
}

// dw waits for the update, dx does not: the smaller one is a node of its own.
TEST(ProblemFromStep, SplitsWhatIsReadLater) {
  const StepProblem made = problem_from_step(step());
  const auto& nodes = made.problem.nodes;
  EXPECT_EQ(nodes[3].bytes, 40);
  EXPECT_EQ(nodes[3].variants[0].workspace, 30) << "both are made at once";
  EXPECT_EQ(nodes[4].rider_of, 3);
  EXPECT_EQ(nodes[4].bytes, 30);
  EXPECT_THAT(nodes[4].variants[0].inputs, IsEmpty());
  EXPECT_THAT(nodes[5].variants[0].inputs, ElementsAre(0, 4));
  EXPECT_THAT(nodes[6].variants[0].inputs, ElementsAre(3, 5));
  EXPECT_NO_THROW(check_problem(made.problem));
  EXPECT_NO_THROW(read_two_pass(made.problem));
}

// Fields that differ between two problems of the same nodes, as "node.field".
std::vector<std::string> differences(const Problem& a, const Problem& b) {
  std::vector<std::string> found;
  EXPECT_EQ(a.size(), b.size());
  for (NodeId i = 0; i < std::min(a.size(), b.size()); ++i) {
    const Node &x = a.nodes[i], &y = b.nodes[i];
    const auto note = [&](bool same, const char* field) {
      if (!same) found.push_back(std::to_string(i) + "." + field);
    };
    note(x.once == y.once, "once");
    note(x.variants.size() == y.variants.size(), "variants");
    for (size_t v = 0; v < std::min(x.variants.size(), y.variants.size()); ++v) {
      note(x.variants[v].workspace == y.variants[v].workspace, "workspace");
    }
    note(std::tie(x.bytes, x.required, x.adds_fixed, x.rider_of, x.after) ==
             std::tie(y.bytes, y.required, y.adds_fixed, y.rider_of, y.after),
         "others");
  }
  return found;
}

TEST(ProblemFromStep, EachPartOfTheModelCanBeLeftOut) {
  StepTrace trace = step();
  trace.ops[1].workspace = Bytes(5);
  trace.ops[4].workspace = Bytes(7);
  trace.storages[7].size = trace.storages[6].size;
  trace.ops[5].may_overwrite = {6};  // norm_grad's dg may take the place of dx
  trace.ops[5].released = {6};
  const Problem whole = problem_from_step(trace).problem;
  const auto without = [&](const StepProblemOptions& options) {
    return differences(whole, problem_from_step(trace, options).problem);
  };
  EXPECT_THAT(without({}), IsEmpty());
  EXPECT_THAT(without({.in_place = false}), ElementsAre("5.variants"));
  EXPECT_THAT(without({.workspace = false}), ElementsAre("0.workspace", "3.workspace"));
  // The others run once in any case: they write in place, or read.
  EXPECT_THAT(without({.recompute = false}),
              ElementsAre("0.once", "1.once", "3.once", "4.once", "5.once"));
  // What a workspace stands for beside the operator's own stays: a rider's bytes, and the value
  // that is overwritten.
  const auto nodes = problem_from_step(trace, {.workspace = false}).problem.nodes;
  EXPECT_EQ(nodes[0].variants[0].workspace, 0);
  EXPECT_EQ(nodes[2].variants[0].workspace, -20);
  EXPECT_EQ(nodes[3].variants[0].workspace, 30);
}

TEST(RematProblemJson, IsReadAgain) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Problem problem = random_training(seed, 4, {});
    problem.nodes.back().after = {0, 1};
    const Problem again = parse_remat_problem(format_remat_problem(problem, {5, 7}), "file");
    ASSERT_EQ(again.size(), problem.size());
    EXPECT_EQ(again.fixed_bytes, problem.fixed_bytes);
    EXPECT_EQ(again.base_time, problem.base_time);
    for (NodeId i = 0; i < problem.size(); ++i) {
      const Node &a = problem.nodes[i], &b = again.nodes[i];
      EXPECT_EQ(std::tie(a.bytes, a.required, a.once, a.adds_fixed, a.rider_of, a.after),
                std::tie(b.bytes, b.required, b.once, b.adds_fixed, b.rider_of, b.after));
      ASSERT_EQ(a.variants.size(), b.variants.size());
      for (size_t v = 0; v < a.variants.size(); ++v) {
        const Variant &c = a.variants[v], &d = b.variants[v];
        EXPECT_EQ(std::tie(c.time, c.workspace, c.inputs, c.overwrites, c.when, c.with),
                  std::tie(d.time, d.workspace, d.inputs, d.overwrites, d.when, d.with));
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::planner::remat
