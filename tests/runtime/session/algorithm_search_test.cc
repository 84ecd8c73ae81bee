#include "runtime/session/algorithm_search.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/optim/optimizer.h"
#include "ops/autograd/autograd.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"
#include "tests/support/values.h"

namespace tidemark {
namespace {

AlgorithmOffer offer(int64_t operands, std::vector<Algorithm> algorithms) {
  return {"call", Bytes(operands), std::move(algorithms)};
}

// Call 1 needs 100 at best. Call 2 is small, so that its default may stay.
const AlgorithmOffers kOffers{
    {1, offer(60, {{"", Bytes(140), Nanos(20)},
                   {"lean", Bytes(40), Nanos(50)},
                   {"quick", Bytes(440), Nanos(10)}})},
    {2, offer(10, {{"", Bytes(30), Nanos(5)}, {"lean", Bytes(0), Nanos(90)}})},
};

TEST(AlgorithmTables, AreTheQuickestWithinLimitsOnWorkingSets) {
  EXPECT_EQ(leanest_table(kOffers), (AlgorithmTable{{1, "lean"}, {2, "lean"}}));
  EXPECT_EQ(candidate_tables(kOffers), (std::vector<AlgorithmTable>{
                                           {},
                                           {{1, "quick"}},
                                           {{1, "lean"}},
                                           {{1, "lean"}, {2, "lean"}},
                                       }));
}

TEST(AlgorithmTables, OfNoOffersAreTheEmptyOne) {
  EXPECT_EQ(candidate_tables({}), std::vector<AlgorithmTable>{{}});
}

TEST(AlgorithmTables, AreTheSameAfterJson) {
  const AlgorithmTable table{{0, "a"}, {0xfedcba9876543210, "x64:gemm:jit"}};
  EXPECT_EQ(to_json(table), R"({"0000000000000000":"a","fedcba9876543210":"x64:gemm:jit"})");
  EXPECT_EQ(parse_algorithms("file", to_json(table)), table);
  EXPECT_EQ(parse_algorithms("file", "{}"), AlgorithmTable());
}

TEST(AlgorithmTables, MalformedOnesAreRefused) {
  for (const std::string text : {"", "[]", "{", R"({"12":"a"})", R"({"000000000000000g":"a"})",
                                 R"({"0000000000000000":1})", R"({"0000000000000000":""})"}) {
    EXPECT_THROW(parse_algorithms("file", text), DataError) << text;
  }
}

// Convolutions in a chain, and the update of their weights.
struct SmallNet {
  SmallNet() : x(testing::random_tensor({4, 12, 12, 16}, 1)) {
    for (uint32_t i = 0; i < 6; ++i) {
      w.push_back(testing::random_leaf({16, 3, 3, 16}, 2 + i, -0.15F, 0.15F));
      parameters.push_back({"w" + std::to_string(i), w.back()});
    }
    sgd = make_sgd(parameters, {.lr = 0.1});
  }
  void step() const {
    Tensor h = x;
    for (const Tensor& each : w) h = relu(conv2d(h, each, {}, {.padding = {1, 1}}));
    backward(mean(mul(h, h)));
    sgd->step();
  }
  Tensor x;
  std::vector<Tensor> w;
  std::vector<NamedTensor> parameters;
  std::shared_ptr<Optimizer> sgd;
};

std::vector<std::function<void()>> program() {
  const auto net = std::make_shared<SmallNet>();
  return {[net] { net->step(); }, [net] { net->step(); }};
}

struct Trained {
  std::vector<std::vector<float>> weights{};
  int64_t released = 0;
};

Trained train(const SessionOptions& options) {
  Session session(options);
  const SmallNet net;
  Trained trained;
  for (int i = 0; i < 4; ++i) {
    const StepStats& stats = session.step([&] { net.step(); });
    trained.released += stats.evictions + stats.offloads;
  }
  for (const Tensor& each : net.w) trained.weights.push_back(testing::to_vector(each));
  return trained;
}

SessionOptions ample() {
  return {.device = "cpu",
          .threads = 1,
          .budget = Bytes(64 << 20),
          .policy = "none",
          .host_limit = Bytes(64 << 20)};
}

// The last algorithm of each call, in the order of the offers, so that several occur.
AlgorithmTable mixed(const AlgorithmOffers& offers) {
  AlgorithmTable table;
  size_t i = 0;
  for (const auto& [signature, each] : offers) {
    const auto& algorithms = each.algorithms;
    table[signature] = algorithms[1 + i++ % (algorithms.size() - 1)].name;
  }
  return table;
}

TEST(Algorithms, GiveTheSameBitsInEveryBudgetByEveryPolicy) {
  SessionOptions options = ample();
  const AlgorithmOffers offers = find_offers(options, program);
  ASSERT_EQ(offers.size(), 3u);  // one shape: forward and two gradients
  const Trained plain = train(options);
  const ChosenAlgorithms at = with_algorithms(options, mixed(offers), program);
  options = at.options;
  const Trained expected = train(options);
  EXPECT_NE(expected.weights, plain.weights) << "the table has no effect";
  for (size_t i = 0; i < plain.weights.size(); ++i) {
    for (size_t j = 0; j < plain.weights[i].size(); ++j) {
      ASSERT_NEAR(expected.weights[i][j], plain.weights[i][j], 1e-5);
    }
  }
  options.unmanaged_peak.reset();
  options.residency.learn_costs = false;  // plans are then made at once
  const auto expect_same_bits = [&](const SessionOptions& tight) {
    SCOPED_TRACE(tight.policy + " in " + format_bytes(*tight.budget));
    const Trained trained = train(tight);
    EXPECT_GT(trained.released, 0);
    EXPECT_EQ(trained.weights, expected.weights);
  };
  for (const std::string policy : {"tide", "delta", "dtr", "austere"}) {
    options.policy = policy;
    const Bytes least = find_minimum_budget(options, program, at.need).budget;
    for (const double share : {0.0, 0.4}) {
      options.budget = align_up(least + share_of(at.need.peak - least, share));
      expect_same_bits(options);
    }
  }
  // Without a tier, all that is released is computed again.
  options.policy = "tide";
  options.host_limit = Bytes(0);
  const MinimumBudget minimum = find_minimum_budget(options, program, at.need);
  options.budget = minimum.budget;
  expect_same_bits(feasible_schedule(options, program, at.need, minimum));
}

// On the model of a GPU, convolutions need a workspace or take longer.
TEST(Algorithms, AreTheQuickestInTheBudget) {
  SessionOptions options = ample();
  options.device = "sim:a100-80gb";
  options.policy = "tide";
  const AlgorithmOffers offers = find_offers(options, program);
  const std::vector<AlgorithmTable> tables = candidate_tables(offers);
  const AlgorithmTable leanest = leanest_table(offers);
  ASSERT_FALSE(leanest.empty());
  const auto find_minimum = [&](const AlgorithmTable& table) {
    const ChosenAlgorithms at = with_algorithms(options, table, program);
    return find_minimum_budget(at.options, program, at.need);
  };
  const MinimumBudget minimum = find_minimum(leanest);
  EXPECT_LT(minimum.budget, find_minimum({}).budget);
  const auto choose = [&](Bytes budget) {
    options.budget = budget;
    DryRunWork work;
    return quickest_algorithms(options, tables, program, work);
  };
  const auto in_ample = choose(Bytes(64 << 20)), in_least = choose(minimum.budget);
  ASSERT_TRUE(in_ample && in_least);
  EXPECT_EQ(*in_ample->options.algorithms, AlgorithmTable());
  EXPECT_NE(*in_least->options.algorithms, AlgorithmTable());
  EXPECT_EQ(in_least->options.unmanaged_peak, in_least->need.peak);
  EXPECT_FALSE(choose(Bytes(512)));
  // Where nothing may be released, tables that do not fit are passed over; without a budget,
  // all fit.
  options.policy = "none";
  EXPECT_FALSE(choose(Bytes(512)));
  options.budget.reset();
  DryRunWork work;
  EXPECT_TRUE(quickest_algorithms(options, tables, program, work));
}

}  // namespace
}  // namespace tidemark
