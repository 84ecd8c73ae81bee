// The parts of a step: phases, subgraph tree, and the segments of updates.
#include "runtime/planner/roam/phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/planner/order/order.h"
#include "runtime/planner/roam/subgraph_tree.h"
#include "runtime/planner/roam/update_schedule.h"
#include "tests/runtime/planner/random_problem.h"
#include "tests/runtime/planner/training_chain.h"

namespace tidemark::planner::roam {
namespace {

using ::testing::ElementsAre;

struct Found {
  explicit Found(Problem p) : problem(std::move(p)), graph(problem) {
    check_problem(problem);
    phases = find_phases(problem, graph);
  }
  Problem problem;
  OrderGraph graph;
  Phases phases;
};

//   segment      1    2    3   |  4      5      6
//   trunk       f1 - f2 - f3 - | loss - b3 --- b2 --- w1      w3: 4, w2: 5
class PhasesOfAChain : public ::testing::TestWithParam<bool> {};

TEST_P(PhasesOfAChain, AreFound) {
  for (const bool read : {false, true}) {
    const TrainingChain chain = training_chain(
        {.steps = 3, .labelled = GetParam(), .labels = read, .read_at_end = read});
    const Found found(chain.problem);
    const Phases& phases = found.phases;
    EXPECT_THAT(phases.insensitive,
                ElementsAre(chain.forward[1], chain.forward[2], chain.forward[3], chain.loss,
                            chain.input_gradient[3], chain.input_gradient[2],
                            chain.weight_gradient[1]));
    EXPECT_EQ(phases.turn, 4);
    EXPECT_EQ(phases.segment[chain.weight_gradient[3]], 4);
    EXPECT_EQ(phases.segment[chain.weight_gradient[2]], 5);
    ASSERT_EQ(phases.branches.size(), 3U);
    EXPECT_EQ(phases.branches[0].ops, chain.update[3]);
    EXPECT_EQ(phases.branches[0].gradients, 20);
    EXPECT_EQ(phases.branches[0].most_memory, 40);  // a temporary and the next one
    // The update waits for b3, which still reads the old weight.
    EXPECT_EQ(phases.branches[0].ready, 5);
    for (size_t i = 0; i < found.graph.size(); ++i) {
      EXPECT_EQ(phases.floats[i], found.problem.operators[i].name[0] == 'u');
    }
    if (read) {
      EXPECT_EQ(phases.segment[chain.read], phases.segments() - 1);
      EXPECT_TRUE(phases.epilogue[chain.read]);
      // Labels belong to the first segment that needs them.
      EXPECT_EQ(phases.segment[chain.labels], 4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(LabelledOrNot, PhasesOfAChain, ::testing::Bool());

TEST(PhasesTest, InferenceHasNoBackwardPass) {
  TrainingChain chain = training_chain({});
  chain.problem.operators.resize(3);
  chain.problem.storages.resize(7);  // data, and per layer a weight and an output
  const Found found(chain.problem);
  EXPECT_EQ(found.phases.turn, found.phases.segments());
  EXPECT_TRUE(found.phases.branches.empty());
}

// For any graph: an operator is in no later segment than its successors, and an insensitive
// operator has only one place among those of the trunk.
TEST(PhasesTest, SegmentsAreInOrder) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Found found(random_problem(seed, {.ops = static_cast<int>(seed % 9)}));
    if (seed % 2 == 0) {
      place_updates(found.graph, {}, found.phases);
    } else {
      place_updates(found.graph, {.placement = UpdatePlacement::kLast}, found.phases);
    }
    for (size_t i = 0; i < found.graph.size(); ++i) {
      for (const OpId before : found.graph.ops[i].before) {
        EXPECT_LE(found.phases.segment[before], found.phases.segment[i]) << seed;
      }
    }
  }
}

TEST(UpdateScheduleTest, DelaysWhileActivationsAreThere) {
  const TrainingChain chain = training_chain({.layers = 6});
  Found found(chain.problem);
  const auto segment_of = [&](const UpdateOptions& options, int layer) {
    Phases phases = found.phases;
    place_updates(found.graph, options, phases);
    return phases.segment[chain.update[layer].front()];
  };
  const int ready = found.phases.segment[chain.update[6].front()];
  const int last = found.phases.segments() - 1;
  EXPECT_EQ(segment_of({.placement = UpdatePlacement::kAtOnce}, 6), ready);
  EXPECT_EQ(segment_of({.placement = UpdatePlacement::kLast}, 6), last);
  // Gradients larger than all activations together never have space before the end.
  EXPECT_EQ(segment_of({.alpha = 100, .delay_radius = 1}, 6), last);
  EXPECT_EQ(segment_of({.alpha = 100, .delay_radius = 1000}, 6), ready);
  // 20 bytes of gradient have space once two of the activations of 10 bytes are gone, which is
  // the case when the gradient is made; 40 bytes have space later.
  EXPECT_EQ(segment_of({.delay_radius = 1}, 6), ready);
  const int later = segment_of({.alpha = 2, .delay_radius = 1}, 6);
  EXPECT_GT(later, ready);
  EXPECT_LT(later, last);
  EXPECT_LT(later, segment_of({.alpha = 3, .delay_radius = 1}, 6));
  // With fewer activations there is space at once.
  EXPECT_EQ(segment_of({.alpha = 2, .delay_radius = 1}, 3),
            found.phases.segment[chain.update[3].front()]);
}

// The decay needs no gradient, but runs in the segment of its update (the paper's figure 6).
TEST(UpdateScheduleTest, MomentsDecayWithTheirUpdates) {
  for (const bool labelled : {false, true}) {
    const TrainingChain chain =
        training_chain({.layers = 4, .moment = true, .labelled = labelled});
    const Found found(chain.problem);
    ASSERT_EQ(found.phases.branches.size(), 4U);
    for (const UpdatePlacement placement :
         {UpdatePlacement::kScheduled, UpdatePlacement::kAtOnce, UpdatePlacement::kLast}) {
      Phases phases = found.phases;
      place_updates(found.graph, {.placement = placement}, phases);
      for (int layer = 1; layer <= 4; ++layer) {
        const std::vector<OpId>& update = chain.update[layer];
        for (const OpId op : update) {
          EXPECT_EQ(phases.segment[op], phases.segment[update.back()]) << layer;
        }
      }
    }
    for (const UpdateBranch& branch : found.phases.branches) {
      EXPECT_EQ(branch.ops.size(), 3U);
      EXPECT_EQ(branch.first, branch.ops[1]);
    }
  }
}

// All updates read one counter, yet each remains a branch of its own.
TEST(PhasesTest, ACounterOfStepsJoinsNoUpdates) {
  TrainingChain chain = training_chain({.layers = 3, .moment = true});
  Problem& problem = chain.problem;
  const StorageId counter = add_storage(problem, "count", 1, Kind::kOptimizerState),
                  counted = add_storage(problem, "count'", 1, Kind::kOptimizerState);
  problem.storages[counter].at_start = problem.storages[counter].at_end = true;
  problem.storages[counted].alias_of = counter;
  add_operator(problem, "count", {counter}, {counted});
  for (int layer = 1; layer <= 3; ++layer) {
    problem.operators[chain.update[layer].back()].inputs.push_back(counted);
  }
  std::vector<size_t> sizes;
  for (const UpdateBranch& branch : Found(problem).phases.branches) {
    sizes.push_back(branch.ops.size());
  }
  EXPECT_THAT(sizes, ::testing::UnorderedElementsAre(1, 3, 3, 3));
}

TEST(UpdateScheduleTest, GradientsWaitWithTheirUpdatesIfTold) {
  const TrainingChain chain = training_chain({.layers = 4, .steps = 2});
  const Found found(chain.problem);
  const int last = found.phases.segments() - 1;
  for (const bool wait : {false, true}) {
    Phases phases = found.phases;
    place_updates(found.graph, {.alpha = 100, .delay_radius = 1, .with_gradients = wait},
                  phases);
    for (int layer = 2; layer <= 4; ++layer) {
      const OpId gradient = chain.weight_gradient[layer];
      EXPECT_EQ(phases.segment[chain.update[layer].front()], last);
      EXPECT_EQ(phases.segment[gradient], wait ? last : found.phases.segment[gradient]);
    }
    // The trunk waits for nothing.
    EXPECT_EQ(phases.segment[chain.input_gradient[3]],
              found.phases.segment[chain.input_gradient[3]]);
  }
}

// Each segment is in one leaf, and each node consists of its children.
void expect_partition(const SubgraphTree& tree, const Phases& phases, uint64_t seed) {
  for (int s = 0; s < phases.segments(); ++s) {
    const auto holders = std::count_if(tree.leaves.begin(), tree.leaves.end(),
                                       [&](int leaf) { return tree.nodes[leaf].has(s); });
    EXPECT_EQ(holders, 1) << "segment " << s << ", seed " << seed;
    for (const SubgraphNode& node : tree.nodes) {
      if (node.children.empty()) continue;
      const auto children = std::count_if(node.children.begin(), node.children.end(),
                                          [&](int child) { return tree.nodes[child].has(s); });
      EXPECT_EQ(children, node.has(s) ? 1 : 0) << seed;
    }
  }
}

TEST(SubgraphTreeTest, ChainIsOneSkinPerLayer) {
  const TrainingChain chain =
      training_chain({.layers = 5, .labels = true, .read_at_end = true});
  const Found found(chain.problem);
  // An update waits until the old weight is read, in the next segment.
  const SubgraphTree tree = make_subgraph_tree(found.graph, found.phases, {.updates = false});
  expect_partition(tree, found.phases, 0);
  EXPECT_EQ(tree.leaves.size(), 5U);
  const SubgraphNode& innermost = tree.nodes[tree.leaves.front()];
  EXPECT_EQ(innermost.forward_end, found.phases.turn);
  EXPECT_EQ(innermost.backward_begin, found.phases.turn);
  for (size_t k = 1; k < tree.leaves.size(); ++k) {
    const SubgraphNode &in = tree.nodes[tree.leaves[k - 1]], &out = tree.nodes[tree.leaves[k]];
    EXPECT_EQ(out.forward_end, in.forward_begin);
    EXPECT_EQ(out.backward_begin, in.backward_end);
  }
}

TEST(SubgraphTreeTest, GradientsThatWaitJoinSubgraphs) {
  const TrainingChain chain = training_chain({.layers = 5});
  Found found(chain.problem);
  place_updates(found.graph, {.placement = UpdatePlacement::kLast}, found.phases);
  const SubgraphTree together = make_subgraph_tree(found.graph, found.phases);
  expect_partition(together, found.phases, 0);
  EXPECT_EQ(together.leaves.size(), 1U);
  const SubgraphTree apart = make_subgraph_tree(found.graph, found.phases, {.updates = false});
  expect_partition(apart, found.phases, 0);
  EXPECT_EQ(apart.leaves.size(), 5U);
}

TEST(SubgraphTreeTest, MergesUpToTheLimit) {
  const TrainingChain chain = training_chain({.layers = 12});
  const Found found(chain.problem);
  const size_t apart =
      make_subgraph_tree(found.graph, found.phases, {.updates = false}).leaves.size();
  const SubgraphTree merged = make_subgraph_tree(
      found.graph, found.phases, {.node_limit = 10, .updates = false, .merge = true});
  expect_partition(merged, found.phases, 0);
  EXPECT_LT(merged.leaves.size(), apart);
  EXPECT_GT(merged.leaves.size(), 1U);
  EXPECT_EQ(make_subgraph_tree(found.graph, found.phases, {.merge = true}).leaves.size(), 1U);
}

TEST(SubgraphTreeTest, NodeLimitSplitsWhatHangsTogether) {
  TrainingChain chain = training_chain({.layers = 8});
  // The last layer uses x1 too, so nothing between is independent.
  chain.problem.operators[chain.forward[8]].inputs.push_back(
      chain.problem.operators[chain.forward[1]].outputs[0]);
  const Found found(chain.problem);
  const SubgraphTree whole = make_subgraph_tree(found.graph, found.phases);
  const SubgraphTree split = make_subgraph_tree(found.graph, found.phases, {.node_limit = 6});
  expect_partition(whole, found.phases, 0);
  expect_partition(split, found.phases, 0);
  EXPECT_GT(split.leaves.size(), whole.leaves.size());
  const SubgraphNode& root = split.nodes.front();
  EXPECT_EQ(root.children.size(), whole.nodes.front().children.size());
}

TEST(SubgraphTreeTest, PartitionsAnything) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Found found(random_problem(seed, {.ops = 1 + static_cast<int>(seed % 40)}));
    for (const int limit : {1, 4, 1000}) {
      for (const bool merge : {false, true}) {
        expect_partition(make_subgraph_tree(found.graph, found.phases,
                                            {.node_limit = limit, .merge = merge}),
                         found.phases, seed);
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::planner::roam
