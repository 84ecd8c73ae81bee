#include "runtime/planner/order/order.h"

#include <gtest/gtest.h>

#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/cut_bound.h"
#include "runtime/planner/order/graph.h"
#include "runtime/planner/order/passes.h"
#include "tests/runtime/planner/problem_builder.h"
#include "tests/runtime/planner/random_problem.h"
#include "tests/support/sanitized.h"

namespace tidemark::planner {
namespace {

TEST(OrderTest, LiteralProblem) {
  const Problem problem = diamond();
  EXPECT_EQ(peak_load(problem, {0, 1, 2, 3}), Bytes(13));  // y, z and u
  EXPECT_EQ(peak_load(problem, {0, 2, 1, 3}), Bytes(14));
  EXPECT_EQ(lescea(problem), (std::vector<OpId>{0, 2, 1, 3}));  // frees the most at once
  EXPECT_EQ(load_bound(problem), Bytes(12));
  const Order order = plan_order(problem);
  EXPECT_EQ(order.order, (std::vector<OpId>{0, 1, 2, 3}));
  EXPECT_EQ(order.bound, Bytes(13));
}

TEST(OrderTest, EqualsBruteForceOnTinyProblems) {
  for (uint64_t seed = 0; seed < tidemark::testing::cases(400u); ++seed) {
    RandomProblemOptions options;
    options.ops = 3 + static_cast<int>(seed % 5);
    options.in_place = false;
    const Problem problem = random_problem(seed, options);
    check_problem(problem);
    Bytes least(INT64_MAX);
    for_each_order(problem, [&](const std::vector<OpId>& order) {
      least = std::min(least, peak_load(problem, order));
    });
    const Order order = plan_order(problem);
    EXPECT_EQ(order.load, least) << seed;
    EXPECT_EQ(peak_load(problem, order.order), order.load) << seed;
    EXPECT_EQ(order.bound, least) << seed;
    EXPECT_LE(load_bound(problem), least) << seed;
  }
}

// The least load while an operator runs, over all orders, equals the minimum cut.
TEST(CutBoundTest, EqualsBruteForcePerOperator) {
  int above = 0;
  for (uint64_t seed = 0; seed < tidemark::testing::cases(300u); ++seed) {
    const Problem problem =
        random_problem(seed, {.ops = 3 + static_cast<int>(seed % 6), .in_place = false});
    const OrderGraph graph(problem);
    std::vector<int64_t> least(graph.size(), INT64_MAX);
    int64_t load = INT64_MAX;
    for_each_order(problem, [&](const std::vector<OpId>& order) {
      const std::vector<int64_t> loads = loads_in(graph, order);
      for (size_t i = 0; i < loads.size(); ++i) least[i] = std::min(least[i], loads[i]);
      load = std::min(load, load_of(graph, order));
    });
    const std::vector<int64_t> forced = forced_loads(graph);
    const Stopwatch watch(60);
    for (size_t i = 0; i < graph.size(); ++i) {
      const CutBound cut = cut_bound_at(graph, static_cast<OpId>(i), INT64_MAX, watch);
      EXPECT_EQ(cut.load, least[i]) << seed << ", operator " << i;
      EXPECT_GE(cut.load, forced[i]) << seed;
      above += cut.load > forced[i] ? 1 : 0;
    }
    const int64_t known = load_bound(problem).count();
    const std::vector<int64_t> upper(graph.size(), INT64_MAX);
    const CutBound all = cut_bound(graph, upper, known, INT64_MAX, watch);
    EXPECT_EQ(all.load, *std::max_element(least.begin(), least.end()));
    EXPECT_LE(all.load, load);
    // If cut short, the search still gives a bound.
    for (const int64_t nodes : {0, 1, 2}) {
      const CutBound some = cut_bound(graph, upper, known, nodes, watch);
      EXPECT_GE(some.load, known);
      EXPECT_LE(some.load, all.load);
    }
  }
  EXPECT_GT(above, tidemark::testing::cases(20));
}

// In place, an operator's output may lie where its input was.
TEST(CutBoundTest, HoldsInPlace) {
  for (uint64_t seed = 0; seed < tidemark::testing::cases(200u); ++seed) {
    const Problem problem = random_problem(seed, {.ops = 7});
    const OrderGraph graph(problem);
    const std::vector<int64_t> forced = forced_loads(graph);
    for (size_t i = 0; i < graph.size(); ++i) {
      EXPECT_GE(cut_bound_at(graph, static_cast<OpId>(i), INT64_MAX, Stopwatch(60)).load,
                forced[i]);
    }
    const Bytes bound = plan_order(problem).bound;
    for_each_order(problem, [&](const std::vector<OpId>& order) {
      const auto lives = lifetimes(problem, order);
      const auto pairs = usable_in_place(problem, lives, order);
      EXPECT_LE(bound, max_load(to_blocks(lives, pairs).buffers)) << seed;
    });
  }
}

TEST(OrderSearchTest, DecidesAlikeInBothDirections) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Problem problem =
        random_problem(seed, {.ops = 3 + static_cast<int>(seed % 5), .in_place = false});
    int64_t least = INT64_MAX;
    const OrderGraph graph(problem), reversed = graph.reversed();
    for_each_order(problem, [&](const std::vector<OpId>& order) {
      least = std::min(least, load_of(graph, order));
    });
    const std::vector<int> prefer(graph.size(), 0);
    for (const OrderGraph* direction : {&graph, &reversed}) {
      OrderSearch search(*direction);
      EXPECT_EQ(search.run(least, prefer, INT64_MAX, Stopwatch(60)), SearchEnd::kFound) << seed;
      EXPECT_EQ(load_of(*direction, search.order()), least) << seed;
      EXPECT_EQ(search.run(least - 1, prefer, INT64_MAX, Stopwatch(60)), SearchEnd::kExhausted)
          << seed;
    }
  }
}

TEST(OrderTest, BoundHoldsInPlaceToo) {
  for (uint64_t seed = 0; seed < tidemark::testing::cases(300u); ++seed) {
    RandomProblemOptions options;
    options.ops = 6;
    const Problem problem = random_problem(seed, options);
    Bytes least(INT64_MAX);
    for_each_order(problem, [&](const std::vector<OpId>& order) {
      const auto lives = lifetimes(problem, order);
      const auto pairs = usable_in_place(problem, lives, order);
      least = std::min(least, max_load(to_blocks(lives, pairs).buffers));
    });
    EXPECT_LE(load_bound(problem), least) << seed;
    EXPECT_LE(plan_order(problem).bound, least) << seed;
  }
}

TEST(OrderTest, NeverWorseThanTheBaselinesAndValid) {
  for (uint64_t seed = 0; seed < tidemark::testing::cases(30u); ++seed) {
    RandomProblemOptions options;
    options.ops = 150;
    const Problem problem = random_problem(seed, options);
    OrderOptions order_options;
    order_options.limits.nodes = 20'000;
    const Order order = plan_order(problem, order_options);
    EXPECT_LE(order.load, peak_load(problem, program_order(problem)));
    EXPECT_LE(order.load, peak_load(problem, lescea(problem)));
    EXPECT_GE(order.load, order.bound);
    EXPECT_EQ(plan_order(problem, order_options).order, order.order) << "not deterministic";
  }
}

TEST(OrderGraphTest, LoadsAgreeWithLifetimesAndBackwards) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Problem problem = random_problem(seed, {.ops = 20});
    const OrderGraph graph(problem);
    std::vector<OpId> order = lescea(problem);
    const int64_t load = load_of(graph, order);
    EXPECT_EQ(Bytes(load), peak_load(problem, order)) << seed;
    std::reverse(order.begin(), order.end());
    EXPECT_EQ(load_of(graph.reversed(), order), load) << seed;
  }
}

TEST(OrderStateTest, UndoRestoresAll) {
  const Problem problem = random_problem(5, {.ops = 30});
  const OrderGraph graph(problem);
  OrderState state(graph);
  std::vector<std::pair<int64_t, uint64_t>> seen;
  std::vector<std::vector<int64_t>> growths;
  const auto growth_of_all = [&] {
    std::vector<int64_t> all;
    for (size_t i = 0; i < graph.size(); ++i) {
      all.push_back(state.growth(static_cast<OpId>(i)));
      all.push_back(state.transient(static_cast<OpId>(i)));
    }
    return all;
  };
  for (const OpId op : lescea(problem)) {
    seen.emplace_back(state.live(), state.key());
    growths.push_back(growth_of_all());
    state.run(op);
  }
  while (!seen.empty()) {
    state.undo();
    EXPECT_EQ(std::pair(state.live(), state.key()), seen.back());
    EXPECT_EQ(growth_of_all(), growths.back());
    seen.pop_back();
    growths.pop_back();
  }
}

TEST(OrderTest, NoOperators) {
  EXPECT_TRUE(plan_order(Problem{}).order.empty());
  EXPECT_EQ(plan_order(Problem{}).load, Bytes(0));
}

}  // namespace
}  // namespace tidemark::planner
