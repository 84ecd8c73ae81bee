#include "runtime/planner/from_trace.h"

#include <gtest/gtest.h>

#include "runtime/planner/lifetimes.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/validator.h"

namespace tidemark::planner {
namespace {

StepTrace::Op call(std::string_view name, std::vector<StepTrace::Input> inputs,
                   std::vector<uint32_t> outputs, std::vector<uint32_t> released = {}) {
  StepTrace::Op op{.kind = StepTrace::Kind::kCall, .name = name};
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.released = std::move(released);
  return op;
}

// w stays; a = f(w); b = g(w, a); w is written; c = h(w); a read of b.
StepTrace example() {
  StepTrace graph;
  graph.storages = {{"w", Category::kParameter, Bytes(512), true, true},
                    {"a", Category::kActivation, Bytes(1024)},
                    {"b", Category::kActivation, Bytes(2048)},
                    {"c", Category::kActivation, Bytes(700)}};
  graph.ops = {call("f", {{0, 0, false}}, {1}), call("g", {{0, 0, false}, {1, 0, false}}, {2}),
               call("update", {{0, 0, true}}, {}, {1}), call("h", {{0, 1, false}}, {3}, {3})};
  graph.ops.push_back({.kind = StepTrace::Kind::kRead, .name = "read"});
  graph.ops.back().inputs = {{2, 0, false}};
  graph.ops.back().released = {2};
  return graph;
}

bool before(const Problem& problem, OpId first, OpId second) {
  const auto edges = predecessors(problem)[static_cast<size_t>(second)];
  return std::find(edges.begin(), edges.end(), first) != edges.end();
}

TEST(FromGraph, VersionsOrderReadersAndWriters) {
  const Problem problem = problem_from_trace(example());
  ASSERT_NO_THROW(check_problem(problem));
  EXPECT_TRUE(before(problem, 0, 2)) << "f reads what the update overwrites";
  EXPECT_TRUE(before(problem, 1, 2));
  EXPECT_TRUE(before(problem, 2, 3)) << "h reads what the update wrote";
  EXPECT_FALSE(before(problem, 1, 3)) << "but nothing of g";
}

TEST(FromGraph, AStorageLivesUntilItIsLetGoOf) {
  const Problem problem = problem_from_trace(example());
  // a's last use is g, but the program holds it until after the update.
  const std::vector<OpId> order{0, 1, 2, 3, 4};
  for (const Placement& p : lifetimes(problem, order)) {
    if (p.storage == 1) {
      EXPECT_EQ(p.end, 3);
    }
    if (p.storage == 3) {
      EXPECT_EQ(p.size, Bytes(1024));
    }
  }
}

TEST(FromGraph, AReadIsABarrier) {
  StepTrace graph = example();
  graph.ops.insert(graph.ops.begin() + 2, {.kind = StepTrace::Kind::kRead, .name = "read"});
  graph.ops[2].inputs = {{1, 0, false}};
  const Problem problem = problem_from_trace(graph);
  for (OpId k : {0, 1}) EXPECT_TRUE(before(problem, k, 2));
  for (OpId k : {3, 4, 5}) EXPECT_TRUE(before(problem, 2, k));
}

TEST(FromGraph, ResidentsMayBeKeptApart) {
  const Plan whole = plan_step(problem_from_trace(example()));
  const Problem problem = problem_from_trace(example(), {.residents_apart = true});
  const Plan apart = plan_step(problem);
  EXPECT_EQ(apart.peak + Bytes(512), whole.peak);
  EXPECT_TRUE(violations(problem, apart).empty());
}

// a dies where b is made. c dies where d, of another size, is made. b is still needed when c is
// made, and w stays.
TEST(FromGraph, InPlacePairsAreOfferedWhereTheyAreAskedFor) {
  StepTrace graph;
  graph.storages = {{"w", Category::kParameter, Bytes(512), true, true},
                    {"a", Category::kActivation, Bytes(512)},
                    {"b", Category::kActivation, Bytes(512)},
                    {"c", Category::kActivation, Bytes(512)},
                    {"d", Category::kActivation, Bytes(1024)}};
  graph.ops = {call("f", {{0, 0, false}}, {1}), call("g", {{1, 0, false}}, {2}, {1}),
               call("h", {{2, 0, false}}, {3}),
               call("i", {{2, 0, false}, {3, 0, false}}, {4}, {2, 3, 4})};
  for (StepTrace::Op& op : graph.ops) {
    for (const StepTrace::Input& input : op.inputs) op.may_overwrite.push_back(input.storage);
  }
  ASSERT_TRUE(trace_violations(graph).empty());
  EXPECT_TRUE(problem_from_trace(graph).may_be_in_place.empty());
  const Problem problem = problem_from_trace(graph, {.in_place = true});
  EXPECT_EQ(problem.may_be_in_place, (std::vector<InPlace>{{1, 1, 2}, {2, 2, 3}}));
  const Plan plan = plan_step(problem);
  EXPECT_TRUE(violations(problem, plan).empty());
  EXPECT_EQ(plan.in_place, (std::vector<InPlace>{{1, 1, 2}}));
}

}  // namespace
}  // namespace tidemark::planner
