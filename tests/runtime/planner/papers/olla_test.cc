// Tests OLLA's programs against brute force on tiny problems, under each switch, and its
// reductions on literal problems.
#include "runtime/planner/papers/olla/olla.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "runtime/planner/io/order_graph.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/papers/olla/early_updates.h"
#include "runtime/planner/papers/olla/graph.h"
#include "runtime/planner/papers/olla/lifetime_program.h"
#include "runtime/planner/papers/olla/location_program.h"
#include "runtime/planner/papers/olla/precedence.h"
#include "runtime/planner/papers/olla/pyramid.h"
#include "runtime/planner/papers/olla/spans.h"
#include "runtime/planner/validator.h"
#include "tests/runtime/planner/least_height.h"
#include "tests/runtime/planner/papers/solvers.h"
#include "tests/runtime/planner/problem_builder.h"
#include "tests/runtime/planner/random_problem.h"
#include "tests/support/sanitized.h"

namespace tidemark::planner::olla {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Named {
  const char* name;
  std::function<void(Options&)> set;
};

// The paper's settings, with one switch changed at a time.
const Named kSwitches[] = {
    {"as published", [](Options&) {}},
    {"without spans", [](Options& o) { o.spans = false; }},
    {"without precedence", [](Options& o) { o.precedence = false; }},
    {"without early updates", [](Options& o) { o.early_updates = false; }},
    {"without pyramid", [](Options& o) { o.pyramid = false; }},
    {"with start", [](Options& o) { o.start = true; }},
    {"with bound", [](Options& o) { o.bound = true; }},
};

std::vector<std::pair<std::string, Options>> switched() {
  std::vector<std::pair<std::string, Options>> all;
  for (const Named& named : kSwitches) {
    all.emplace_back(named.name, published());
    named.set(all.back().second);
  }
  return all;
}

Problem tiny(uint64_t seed, int ops = 5) {
  return random_problem(seed, {.ops = ops, .in_place = false});
}

Bytes least_load(const Problem& problem) {
  Bytes least(INT64_MAX);
  for_each_order(problem, [&](const std::vector<OpId>& order) {
    least = std::min(least, peak_load(problem, order));
  });
  return least;
}

TEST(OllaOrder, EqualsBruteForceUnderEachSwitch) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Problem problem = tiny(seed, 3 + static_cast<int>(seed % 4));
    const Bytes least = least_load(problem);
    // Early updates restrict the orders; they have tests of their own below.
    const bool restricted = !early_updates(problem).empty();
    for (const Timesteps timesteps : {Timesteps::kOperators, Timesteps::kOnePerStep}) {
      for (const Named& named : kSwitches) {
        SCOPED_TRACE(std::string(named.name) + ", seed " + std::to_string(seed) +
                     (timesteps == Timesteps::kOnePerStep ? ", one per step" : ""));
        Options options = published();
        options.timesteps = timesteps;
        named.set(options);
        const OrderResult result = order(problem, options);
        ASSERT_TRUE(result.order) << result.report.note;
        EXPECT_EQ(result.report.status, SolveStatus::kOptimal);
        EXPECT_EQ(result.order->load, peak_load(problem, result.order->order));
        EXPECT_LE(result.order->load, result.report.peak) << "more than it was charged for";
        EXPECT_LE(result.order->bound, least);
        if (restricted && options.early_updates) {
          EXPECT_GE(result.order->load, least);
        } else {
          EXPECT_EQ(result.order->load, least);
          EXPECT_EQ(result.report.peak, least);
          EXPECT_EQ(result.order->bound, least) << "proven, but not said";
        }
      }
    }
  }
}

// The least load over all ways to put operators into as many timesteps as the longest path has.
int64_t least_in_levels(const Graph& graph) {
  const Spans spans = make_spans(graph, depth(graph), true);
  const LifetimeProgram program(graph, spans, false, 1);
  std::vector<int> steps(graph.op_count());
  int64_t least = INT64_MAX;
  const std::function<void(size_t)> place = [&](size_t k) {
    if (k == graph.op_count()) {
      least = std::min(least, program.peak_of(steps));
      return;
    }
    const OpId v = graph.topological[k];
    int first = spans.asap[v];
    for (const OpId u : graph.before[v]) first = std::max(first, steps[u] + 1);
    for (steps[v] = first; steps[v] <= spans.alap[v]; ++steps[v]) place(k + 1);
  };
  place(0);
  return least;
}

TEST(OllaOrder, InLevelsEqualsBruteForceUnderEachSwitch) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (uint64_t seed = 100; seed < 105; ++seed) {
    const Problem problem = tiny(seed, 4 + static_cast<int>(seed % 4));
    if (!early_updates(problem).empty()) continue;
    const int64_t least = least_in_levels(Graph(problem));
    for (const auto& [name, options] : switched()) {
      SCOPED_TRACE(name + ", seed " + std::to_string(seed));
      const OrderResult result = order(problem, options);
      ASSERT_TRUE(result.order) << result.report.note;
      EXPECT_EQ(result.report.peak, Bytes(least));
      EXPECT_EQ(result.report.bound, Bytes(least));
      EXPECT_LE(result.order->load, Bytes(least));
      EXPECT_GE(result.order->load, least_load(problem));
      EXPECT_LE(result.order->bound, least_load(problem));
    }
  }
}

std::vector<Buffer> random_buffers(uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    const auto begin = static_cast<int64_t>(random() % 6);
    buffers.push_back({begin, begin + static_cast<int64_t>(random() % 5),
                       Bytes(static_cast<int64_t>(random() % 7))});
  }
  return buffers;
}

TEST(OllaLayout, EqualsBruteForceUnderEachSwitch) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const std::vector<Buffer> buffers = random_buffers(seed, 6);
    const Bytes least = least_height(buffers);
    for (const auto& [name, options] : switched()) {
      SCOPED_TRACE(name + ", seed " + std::to_string(seed));
      const LayoutResult result = layout(buffers, options);
      ASSERT_TRUE(result.layout) << result.report.note;
      EXPECT_THAT(layout_violations(buffers, result.layout->offsets, result.layout->height),
                  IsEmpty());
      EXPECT_EQ(result.report.status, SolveStatus::kOptimal);
      EXPECT_LE(result.layout->bound, least);
      if (options.pyramid) {  // it may lose
        EXPECT_GE(result.layout->height, least);
      } else {
        EXPECT_EQ(result.layout->height, least);
        EXPECT_EQ(result.layout->bound, least);
      }
    }
  }
}

// Placing the largest first does not give the optimum here.
TEST(OllaLayout, ClosesAGapThatGreedyLeaves) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  std::vector<Buffer> buffers;
  for (uint64_t seed = 0; buffers.empty(); ++seed) {
    buffers = random_buffers(seed, 7);
    if (height(buffers, fit_around(buffers, {})) == least_height(buffers)) buffers.clear();
  }
  ASSERT_GT(height(buffers, fit_around(buffers, {})), least_height(buffers));
  Options options;
  options.pyramid = false;
  const LayoutResult result = layout(buffers, options);
  ASSERT_TRUE(result.layout);
  EXPECT_EQ(result.layout->height, least_height(buffers));
}

TEST(OllaPlan, IsValidUnderEachSwitch) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const Problem problem = random_problem(seed, {.ops = 5});
    for (const Timesteps timesteps : {Timesteps::kLevels, Timesteps::kOnePerStep}) {
      for (const Named& named : kSwitches) {
        SCOPED_TRACE(std::string(named.name) + ", seed " + std::to_string(seed));
        Options options = published();
        options.timesteps = timesteps;
        options.in_place = seed % 2 == 0;
        named.set(options);
        const PlanResult result = plan(problem, options);
        ASSERT_TRUE(result.plan) << result.lifetimes.note << result.locations.note;
        EXPECT_THAT(violations(problem, *result.plan), IsEmpty());
      }
    }
  }
}

// Without splitting: order and places together, against all orders with all layouts of each.
TEST(OllaPlan, JointlyEqualsBruteForce) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (uint64_t seed = 200; seed < 203; ++seed) {
    const Problem problem = tiny(seed, 3);
    if (!early_updates(problem).empty()) continue;
    Bytes least(INT64_MAX);
    for_each_order(problem, [&](const std::vector<OpId>& order) {
      std::vector<Buffer> buffers;
      for (const Placement& p : lifetimes(problem, order)) {
        if (p.size > Bytes(0) && p.begin < p.end) buffers.push_back({p.begin, p.end, p.size});
      }
      ASSERT_LT(buffers.size(), 10u);
      least = std::min(least, least_height(buffers));
    });
    for (const bool precedence : {true, false}) {
      for (const bool start : {true, false}) {
        for (const Timesteps timesteps : {Timesteps::kOperators, Timesteps::kOnePerStep}) {
          Options options = published();
          options.splitting = false;
          options.precedence = precedence;
          options.start = options.bound = start;
          options.timesteps = timesteps;
          const PlanResult result = plan(problem, options);
          ASSERT_TRUE(result.plan) << result.lifetimes.note;
          EXPECT_THAT(violations(problem, *result.plan), IsEmpty());
          EXPECT_EQ(result.plan->peak, least) << "seed " << seed;
          EXPECT_EQ(result.lifetimes.bound, least) << "seed " << seed;
        }
      }
    }
  }
}

TEST(OllaPlan, KeepsItsOrderWhenToldTo) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  const Problem problem = random_problem(7, {.ops = 8});
  Options options;
  options.reorder = false;
  const PlanResult result = plan(problem, options);
  ASSERT_TRUE(result.plan);
  EXPECT_EQ(result.plan->order, program_order(problem));
  EXPECT_THAT(violations(problem, *result.plan), IsEmpty());
}

TEST(OllaPlan, KeepsTheDeadline) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  const Problem problem = random_problem(3, {.ops = 60});
  Options options;
  options.bound = false;
  options.timesteps = Timesteps::kOnePerStep;
  options.limits.seconds = 0.05;
  const PlanResult some = plan(problem, options);
  ASSERT_TRUE(some.plan);
  EXPECT_THAT(violations(problem, *some.plan), IsEmpty());
  EXPECT_LE(some.plan->load, peak_load(problem, lescea(problem)));
  options.start = false;
  const PlanResult none = plan(problem, options);
  EXPECT_FALSE(none.plan);
  EXPECT_EQ(none.lifetimes.status, SolveStatus::kUnknown);
}

// Buffers that nest are all the pyramid's: however many pairs they form, the program has none
// of them. A last one crosses some.
std::vector<Buffer> many_that_nest(int count) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) buffers.push_back({i, 2 * count - i, Bytes(1 + i % 3)});
  buffers.push_back({count, 2 * count + 1, Bytes(5)});
  return buffers;
}

TEST(OllaLayout, CountsPairsAfterThePyramid) {
  std::vector<Buffer> buffers = many_that_nest(4);
  // The last meets all four, which without the pyramid have six pairs among them.
  LocationOptions options;
  EXPECT_EQ(LocationProgram::term_count(buffers, options), 8 * 10);
  options.placed = pyramid(buffers);
  ASSERT_EQ(options.placed.size(), 4u);
  EXPECT_EQ(LocationProgram::term_count(buffers, options), 8 * 4);
  // While this one lives, the first two leave nothing free below them.
  buffers.push_back({1, 5, Bytes(7)});
  EXPECT_EQ(LocationProgram::term_count(buffers, options), 8 * (4 + 2 + 1));
  // It is the number of terms in rows (6), (7a) and (7b), exactly.
  for (uint64_t seed = 0; seed < 20; ++seed) {
    buffers = random_buffers(seed, 12);
    for (const bool precedence : {true, false}) {
      for (const bool place : {true, false}) {
        options = LocationOptions();
        options.precedence = precedence;
        if (place) options.placed = pyramid(buffers);
        size_t terms = 0;
        LocationProgram program(buffers, options);
        for (const Row& row : program.program().rows) {
          if (!row.name.starts_with("(8)")) terms += row.terms.size();
        }
        EXPECT_EQ(LocationProgram::term_count(buffers, options), static_cast<int64_t>(terms))
            << "seed " << seed;
      }
    }
  }
}

// The pairs of so many buffers cannot be walked one by one: there are 10^11, 10^9 with a
// sanitizer.
TEST(OllaLayout, OnlyWalksThePairsThatItNeeds) {
  constexpr int kCount = tidemark::testing::cases(500'000);
  const std::vector<Buffer> buffers = many_that_nest(kCount);
  LocationOptions options;
  options.placed = pyramid(buffers);
  EXPECT_EQ(options.placed.size(), static_cast<size_t>(kCount));
  // All nest around the time at which the last one begins.
  EXPECT_EQ(LocationProgram::term_count(buffers, options), int64_t{8} * kCount);
  EXPECT_EQ(LocationProgram(buffers, options).program().rows.size(), 4U * kCount + 1);
}

// The least height around what is placed: taken in the order of its offsets in the best layout,
// each buffer gets no higher if it goes to the lowest place that is free.
Bytes least_height_around(const std::vector<Buffer>& buffers,
                          const std::vector<std::pair<int, Offset>>& placed) {
  std::vector<bool> fixed(buffers.size(), false);
  for (const auto& [i, offset] : placed) fixed[i] = true;
  std::vector<int> free;
  for (int i = 0; i < static_cast<int>(buffers.size()); ++i) {
    if (!fixed[i]) free.push_back(i);
  }
  Bytes least(INT64_MAX);
  do {
    auto there = placed;
    Offsets offsets = fit_around(buffers, placed);
    for (const int i : free) {
      std::vector<Buffer> so_far;
      std::vector<std::pair<int, Offset>> around;
      for (const auto& [other, offset] : there) {
        around.emplace_back(static_cast<int>(so_far.size()), offset);
        so_far.push_back(buffers[other]);
      }
      so_far.push_back(buffers[i]);
      offsets[i] = fit_around(so_far, around).back();
      there.emplace_back(i, offsets[i]);
    }
    least = std::min(least, height(buffers, offsets));
  } while (std::next_permutation(free.begin(), free.end()));
  return least;
}

TEST(OllaLayout, EqualsBruteForceAroundThePyramid) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  int raised = 0;
  for (uint64_t seed = 0; seed < tidemark::testing::cases(40u); ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Buffer> buffers = random_buffers(seed, 8);
    const auto stack = pyramid(buffers);
    const LayoutResult result = layout(buffers, published());
    ASSERT_TRUE(result.layout) << result.report.note;
    EXPECT_EQ(result.layout->height, least_height_around(buffers, stack));
    LocationOptions options;
    options.placed = stack;
    LocationProgram program(buffers, options);
    for (const Variable& v : program.program().variables) {
      raised += v.name.starts_with("A") && v.lower > 0 && v.lower < v.upper ? 1 : 0;
    }
  }
  if (tidemark::testing::kSanitized) return;  // too few cases
  EXPECT_GT(raised, 5) << "the stack raises too few buffers to be a test";
}

TEST(OllaLayout, TakesManyBuffersThatThePyramidPlaces) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  const std::vector<Buffer> buffers = many_that_nest(1200);
  ASSERT_GT(LocationProgram::term_count(buffers, {}), kMaxTerms);
  Options options = published();
  options.limits.seconds = 200;  // some seconds of a core, which the machine may lack
  const LayoutResult result = layout(buffers, options);
  ASSERT_TRUE(result.layout) << result.report.note;
  EXPECT_THAT(layout_violations(buffers, result.layout->offsets, result.layout->height),
              IsEmpty());
  EXPECT_EQ(result.layout->height, max_load(buffers));
  options.pyramid = false;
  EXPECT_THAT(layout(buffers, options).report.note, HasSubstr("million terms"));
}

// The curve of a program ends at its own peak.
TEST(OllaReport, TellsHowItsPeakFellOverTime) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  const Problem problem = random_problem(11, {.ops = 12});
  Options options = published();
  options.timesteps = Timesteps::kOperators;
  const OrderResult ordered = order(problem, options);
  ASSERT_TRUE(ordered.order) << ordered.report.note;
  options.pyramid = false;
  std::vector<Buffer> buffers = random_buffers(2, 12);
  for (Buffer& b : buffers) b.size = b.size * 1'000'000;  // the solver's unit is many bytes
  const LayoutResult placed = layout(buffers, options);
  ASSERT_TRUE(placed.layout) << placed.report.note;
  for (const Report& report : {ordered.report, placed.report}) {
    ASSERT_FALSE(report.improvements.empty());
    const auto peak = static_cast<double>(report.peak.count());
    EXPECT_NEAR(static_cast<double>(report.improvements.back().peak.count()), peak,
                1e-5 * peak);
    for (size_t i = 1; i < report.improvements.size(); ++i) {
      EXPECT_LT(report.improvements[i].peak, report.improvements[i - 1].peak);
      EXPECT_LE(report.improvements[i].bound, report.improvements[i].peak);
    }
  }
}

TEST(OllaPlan, SaysSoWhenAProgramIsTooLarge) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  const Problem problem = random_problem(3, {.ops = 900});
  Options options = published();
  options.spans = false;
  options.timesteps = Timesteps::kOperators;
  const OrderResult result = order(problem, options);
  EXPECT_FALSE(result.order);
  EXPECT_THAT(result.report.note, HasSubstr("million terms"));
}

// --- the reductions -----------------------------------------------------------------------

TEST(OllaSpans, OfADiamond) {
  Problem problem = diamond();
  add_operator(problem, "e", {}, {add_storage(problem, "w", 3)});  // nothing waits for it
  const Graph graph(problem);
  EXPECT_EQ(depth(graph), 3);
  const Spans spans = make_spans(graph, 4, true);
  EXPECT_THAT(spans.asap, ElementsAre(0, 1, 1, 2, 0));
  EXPECT_THAT(spans.alap, ElementsAre(1, 2, 2, 3, 3));
  //                                   y  z  u  v  w
  EXPECT_THAT(spans.first, ElementsAre(1, 1, 2, 2, 1));
  EXPECT_THAT(spans.last, ElementsAre(2, 2, 3, 3, -1));
  EXPECT_THAT(spans.forced_first, ElementsAre(2, 2, 3, 3, 4));
  EXPECT_THAT(spans.forced_last, ElementsAre(1, 1, 2, 2, -1));
  const Spans tight = make_spans(graph, 3, true);
  EXPECT_THAT(tight.alap, ElementsAre(0, 1, 1, 2, 2));
  EXPECT_THAT(tight.forced_first, ElementsAre(1, 1, 2, 2, 3));
  EXPECT_THAT(tight.forced_last, ElementsAre(1, 1, 2, 2, -1));
}

// A chain is determined by its structure: only the peak remains a variable.
TEST(OllaSpans, OfAChainLeaveNothingToDecide) {
  Problem problem;
  for (int i = 0; i < 6; ++i) {
    const StorageId made = add_storage(problem, "s", 1 + i);
    add_operator(problem, "op", {}, {made});
    if (i > 0) problem.operators.back().inputs = {made - 1};
  }
  const Graph graph(problem);
  const Spans spans = make_spans(graph, 6, true);
  LifetimeProgram program(graph, spans, false, 1);
  EXPECT_EQ(program.program().variables.size(), 1u);
  const Spans wide = make_spans(graph, 6, false);
  LifetimeProgram whole(graph, wide, false, 1);
  EXPECT_GT(whole.program().variables.size(), 60u);
}

TEST(OllaPrecedence, IsRightAboutEveryOrder) {
  int apart = 0, pairs = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Problem problem = tiny(seed, 6);
    const Graph graph(problem);
    const Spans spans = make_spans(graph, static_cast<int>(graph.op_count()), true);
    const Precedence precedence(graph, spans);
    for_each_order(problem, [&](const std::vector<OpId>& order) {
      std::vector<int> at(order.size());
      for (size_t t = 0; t < order.size(); ++t) at[order[t]] = static_cast<int>(t);
      const auto life = [&](const Tensor& tensor) {
        const int begin = tensor.source == kNone ? 0 : at[tensor.source];
        int end = begin;
        for (const OpId v : tensor.sinks) end = std::max(end, at[v]);
        return std::pair(begin, tensor.kept ? static_cast<int>(order.size()) : end);
      };
      for (int i = 0; i < static_cast<int>(graph.tensors.size()); ++i) {
        for (int j = 0; j < i; ++j) {
          ++pairs;
          if (!precedence.never_together(i, j)) continue;
          ++apart;
          const auto [a, b] = life(graph.tensors[i]);
          const auto [c, d] = life(graph.tensors[j]);
          EXPECT_TRUE(b < c || d < a) << "seed " << seed;
        }
      }
    });
  }
  EXPECT_GT(apart, pairs / 20) << "it tells too little to be of use";
}

TEST(OllaPyramid, StacksWhatNests) {
  //   0 |-----------|      1   |------|     2  |----|  (crosses 1)     3     |--|
  const std::vector<Buffer> buffers = {
      {0, 9, Bytes(2)}, {2, 8, Bytes(3)}, {1, 5, Bytes(9)}, {5, 7, Bytes(1)}, {3, 3, Bytes(8)}};
  const auto stack = pyramid(buffers);
  EXPECT_THAT(stack, ElementsAre(std::pair(0, Offset(0)), std::pair(1, Offset(2)),
                                 std::pair(3, Offset(5))));
}

// forward: x -w1-> y -w2-> loss; backward: dw2 and dy from the loss, dw1 from dy; updates last
// in program order. The update of w2 is anchored at the operator that makes dw1.
TEST(OllaEarlyUpdates, AnchorAnUpdateInTheBackwardPass) {
  Problem problem;
  const auto storage = [&](const char* name, int64_t size, Kind kind, bool state = false) {
    const StorageId id = add_storage(problem, name, size, kind);
    problem.storages[id].at_start = problem.storages[id].at_end = state;
    return id;
  };
  const auto alias = [&](const char* name, StorageId of) {
    const StorageId id = storage(name, problem.storages[of].size.count(), Kind::kParameter);
    problem.storages[id].alias_of = of;
    return id;
  };
  const auto op = [&](const char* name, std::vector<StorageId> inputs,
                      std::vector<StorageId> outputs, std::vector<OpId> after = {}) {
    add_operator(problem, name, std::move(inputs), std::move(outputs), std::move(after));
  };
  const StorageId w1 = storage("w1", 5, Kind::kParameter, true),
                  w2 = storage("w2", 5, Kind::kParameter, true),
                  y = storage("y", 3, Kind::kActivation),
                  l = storage("l", 1, Kind::kActivation),
                  dw2 = storage("dw2", 5, Kind::kGradient),
                  dy = storage("dy", 3, Kind::kGradient),
                  dw1 = storage("dw1", 5, Kind::kGradient), n1 = alias("w1.next", w1),
                  n2 = alias("w2.next", w2);
  op("forward1", {w1}, {y});             // 0, level 0
  op("forward2", {w2, y}, {l});          // 1, level 1
  op("weight_grad2", {y, l}, {dw2});     // 2, level 2
  op("input_grad2", {w2, l}, {dy});      // 3, level 2
  op("relu_grad", {dy, y}, {});          // 4, level 3
  op("weight_grad1", {dy}, {dw1}, {4});  // 5, level 4
  op("update1", {w1, dw1}, {n1});        // 6, level 5
  op("update2", {w2, dw2}, {n2}, {3});   // 7, level 3
  check_problem(problem);
  const auto edges = early_updates(problem);
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0].update, 7);
  EXPECT_EQ(edges[0].anchor, 5);
  EXPECT_NO_THROW(check_problem(with_edges(problem, edges)));
  EXPECT_LE(peak_load(problem, lescea(with_edges(problem, edges))),
            peak_load(problem, program_order(problem)));
}

// Files with the edges that the program of OLLA's authors added. Ours lead to operators of the
// same backward level; the paper leaves open which of several on one level.
class OllaFiles : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, OllaFiles,
                         ::testing::Values("alexnet_1", "squeezenet_1", "transformer_1",
                                           "resnet18_1"));

TEST_P(OllaFiles, HoldTheEdgesThatWeFind) {
  const std::string file =
      std::string(TIDEMARK_INSTANCES "/order/") + GetParam() + "_train.json.gz";
  Problem problem = parse_order_graphs(read_text_file(file), file)[0].problem;
  std::vector<std::pair<OpId, OpId>> theirs, ours;
  for (size_t v = 0; v < problem.op_count(); ++v) {
    // The files' other edges without size come from operators that use no parameter.
    std::erase_if(problem.operators[v].after, [&](OpId u) {
      const auto& inputs = problem.operators[u].inputs;
      if (std::none_of(inputs.begin(), inputs.end(), [&](StorageId id) {
            return problem.storages[id].kind == Kind::kParameter;
          })) {
        return false;
      }
      theirs.emplace_back(u, static_cast<OpId>(v));
      return true;
    });
  }
  const std::vector<int> level = backward_levels(Graph(problem));
  for (auto& [update, anchor] : theirs) anchor = level[anchor];
  for (const ControlEdge& edge : early_updates(problem)) {
    ours.emplace_back(edge.update, level[edge.anchor]);
  }
  std::sort(theirs.begin(), theirs.end());
  std::sort(ours.begin(), ours.end());
  ASSERT_GT(theirs.size(), 5u);
  EXPECT_EQ(ours, theirs);
}

// The peaks of the authors' program for these files, solved by CBC (`olla_cbc_peak`).
TEST(OllaPeaks, AreThoseOfTheAuthors) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (const auto& [name, theirs] : {std::pair("alexnet_1", int64_t{399'106'720}),
                                     {"alexnet_32", int64_t{513'559'712}},
                                     {"squeezenet_1", int64_t{43'159'136}},
                                     {"transformer_1", int64_t{36'540'592}},
                                     {"resnet18_1", int64_t{77'743'264}}}) {
    const std::string file =
        std::string(TIDEMARK_INSTANCES "/order/") + name + "_train.json.gz";
    const Problem problem =
        parse_order_graphs(read_text_file(file), file, Parameters::kResident)[0].problem;
    Options options = published();
    options.early_updates = false;  // they are in the files
    options.more_timesteps = (depth(Graph(problem)) + 99) / 100;
    options.limits.seconds = 120;
    const OrderResult result = order(problem, options);
    ASSERT_TRUE(result.order) << name << ": " << result.report.note;
    EXPECT_EQ(result.report.status, SolveStatus::kOptimal) << name;
    EXPECT_EQ(result.report.peak, Bytes(theirs)) << name;
  }
}

}  // namespace
}  // namespace tidemark::planner::olla
