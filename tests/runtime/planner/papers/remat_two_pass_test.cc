// How rematerialisation problems are read as a forward and a backward pass.
#include "runtime/planner/papers/remat/two_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "runtime/planner/io/remat_json.h"
#include "tests/runtime/planner/papers/training_problems.h"
#include "tests/support/usage_error.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::tidemark::testing::usage_error;

Problem instance(const std::string& name) {
  const std::string file = std::string(TIDEMARK_INSTANCES "/remat/") + name;
  return parse_remat_problem(read_text_file(file), file);
}

// a -> b -> c | dc(b, c), db(a, dc), da(a, db)
TEST(TwoPass, ReadsTheToy) {
  const TwoPass passes = read_two_pass(toy());
  EXPECT_EQ(passes.forward, 3);
  ASSERT_EQ(passes.stages.size(), 4u);
  for (size_t t = 1; t < 4; ++t) {
    EXPECT_EQ(passes.stages[t].first, static_cast<int>(t) + 2);
    EXPECT_TRUE(passes.stages[t].reads_forward);
  }
  EXPECT_THAT(passes.stages[1].needed, ElementsAre(1, 1, 1));
  EXPECT_THAT(passes.stages[2].needed, ElementsAre(1, 0, 0)) << "b and c are read no more";
  EXPECT_THAT(passes.stages[1].last_reader, ElementsAre(1, 2, -1));
  EXPECT_THAT(passes.last_reader, ElementsAre(1, 2, -1));
  //                            a  b  c  dc db  da
  EXPECT_THAT(passes.gradients, ElementsAre(0, 0, 0, 0, 10, 10, 0));
}

// The backward pass of a captured step begins at the gradient of its loss, also where gradients
// wait for their norm (bert).
TEST(TwoPass, FindsTheLossOfCapturedSteps) {
  for (const char* const name :
       {"resnet18_32.json.gz", "vgg16_32.json.gz", "bert-base_32.json.gz"}) {
    const Problem problem = instance(name);
    const TwoPass passes = read_two_pass(problem);
    EXPECT_THAT(problem.nodes[passes.steps[passes.forward].node].name,
                HasSubstr("cross_entropy_grad"))
        << name;
  }
}

TEST(TwoPass, FindsTheLossOfRandomProblems) {
  constexpr int kChain = 4;  // as many backward nodes, the gradient of the loss among them
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Problem problem = random_training(seed, kChain, {});
    EXPECT_EQ(read_two_pass(problem).forward, problem.size() - kChain) << "seed " << seed;
  }
}

// Backward nodes that read no forward value share a stage, in which nothing runs again.
TEST(TwoPass, JoinsStagesWithoutForwardValues) {
  Problem problem = toy();
  problem.nodes.push_back(make_node(1, 0, {4}));
  problem.nodes.push_back(make_node(1, 0, {5}));
  problem.nodes[6].required = true;
  const TwoPass passes = read_two_pass(problem);
  ASSERT_EQ(passes.stages.size(), 5u);
  EXPECT_FALSE(passes.stages[4].reads_forward);
  EXPECT_EQ(passes.stages[4].first, 6);
  EXPECT_EQ(passes.stages[4].end, 8);
}

// a is read after dc; b and c are not.
TEST(TwoPass, KeepsWhatMayNotRunLater) {
  Problem problem = toy();
  problem.nodes[3].after = {0, 1, 2};
  const TwoPass passes = read_two_pass(problem);
  EXPECT_FALSE(passes.steps[0].may_run_again);
  EXPECT_TRUE(passes.steps[1].may_run_again);
  EXPECT_TRUE(passes.steps[2].may_run_again);
  problem.nodes[2].after = {1};
  EXPECT_FALSE(read_two_pass(problem).steps[1].may_run_again) << "over in the forward pass";
  problem.nodes[1].after = {2};
  EXPECT_THAT(usage_error([&] { check_problem(problem); }), HasSubstr("no order"));
}

TEST(TwoPass, PutsRidersBehindTheirNodes) {
  Problem problem = toy();
  Node rider = make_node(1, 1, {0});
  rider.rider_of = 0;
  problem.nodes.push_back(rider);
  problem.nodes[5].variants.push_back(problem.nodes[5].variants[0]);
  problem.nodes[5].variants[1].inputs = {4, 6};
  problem.nodes[5].required = true;
  const TwoPass passes = read_two_pass(problem);
  EXPECT_EQ(passes.forward, 4);
  EXPECT_EQ(passes.steps[1].node, 6);
  EXPECT_EQ(passes.steps[1].rides_on, 0);
}

// db's by-product, which da reads.
TEST(TwoPass, RunsBackwardRidersWithTheirNodes) {
  Problem problem = toy();
  problem.nodes.insert(problem.nodes.begin() + 5, make_node(0, 1, {}));
  problem.nodes[5].rider_of = 4;
  problem.nodes[6].variants[0].inputs = {0, 4, 5};
  const TwoPass passes = read_two_pass(problem);
  ASSERT_EQ(passes.stages.size(), 5u);
  EXPECT_EQ(passes.stages[3].first, 5);
  EXPECT_FALSE(passes.stages[3].reads_forward);
  EXPECT_EQ(passes.steps[5].rides_on, 4);
}

TEST(TwoPass, RunsUpdatesEarlyOnRequest) {
  Problem problem = toy();
  problem.nodes[5].required = true;
  Node update = make_node(1, 0, {3});
  update.required = update.once = true;
  problem.nodes.push_back(update);
  EXPECT_EQ(read_two_pass(problem).steps.back().node, 6);
  EXPECT_EQ(read_two_pass(problem, {.order = FirstOrder::kEager}).steps[4].node, 6);
}

TEST(TwoPass, RejectsWhatIsNoTrainingStep) {
  Problem single;
  single.base_time = 1;
  single.nodes = {make_node(1, 1, {}), make_node(1, 1, {})};
  EXPECT_THAT(usage_error([&] { read_two_pass(single); }), HasSubstr("no backward pass"));

  Problem rider = toy();
  rider.nodes.insert(rider.nodes.begin() + 5, make_node(1, 1, {1, 4}));
  rider.nodes[5].rider_of = 4;
  rider.nodes[6].variants[0].inputs = {0, 5};
  EXPECT_THAT(usage_error([&] { read_two_pass(rider); }),
              HasSubstr("backward rider that reads forward values"));

  Problem later = toy();
  later.nodes[1].variants.push_back(later.nodes[1].variants[0]);
  later.nodes[1].variants[1].inputs = {3};
  EXPECT_THAT(usage_error([&] { read_two_pass(later); }),
              HasSubstr("comes later in the order"));

  Problem overwriting = toy();
  overwriting.nodes[3].variants[0].overwrites = 0;  // a, which db and da read
  EXPECT_THAT(usage_error([&] { read_two_pass(overwriting); }),
              HasSubstr("only overwrite a value"));
}

}  // namespace
}  // namespace tidemark::planner::remat
