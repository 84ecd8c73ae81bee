#include "runtime/planner/layout/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "bench/layout_variants.h"
#include "bench/training_buffers.h"
#include "runtime/core/errors.h"
#include "runtime/planner/layout/exact_search.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/skyline_fit.h"
#include "runtime/planner/validator.h"
#include "tests/runtime/planner/least_height.h"
#include "tests/support/sanitized.h"

namespace tidemark::planner {
namespace {

std::vector<Buffer> random_buffers(uint64_t seed, int count, int span, int most) {
  std::mt19937_64 random(seed);
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    const auto begin = static_cast<int64_t>(random() % static_cast<uint64_t>(span));
    const auto life = static_cast<int64_t>(random() % 5 + 1);
    buffers.push_back(
        {begin, begin + life,
         Bytes(static_cast<int64_t>(random() % static_cast<uint64_t>(most) + 1))});
  }
  return buffers;
}

bool meet(const Buffer& a, const Buffer& b) { return a.begin < b.end && b.begin < a.end; }

// The lowest free place for buffer order[k] above and between those before it.
Offset lowest_place(const std::vector<Buffer>& buffers, const std::vector<size_t>& order,
                    size_t k, const Offsets& offsets) {
  Offset place;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t j = 0; j < k; ++j) {
      const size_t other = order[j];
      if (meet(buffers[order[k]], buffers[other]) &&
          place < offsets[other] + buffers[other].size &&
          offsets[other] < place + buffers[order[k]].size) {
        place = offsets[other] + buffers[other].size;
        moved = true;
      }
    }
  }
  return place;
}

// Whether all fit below `capacity`, by trying every offset of each.
bool fits(const std::vector<Buffer>& buffers, int64_t capacity) {
  Offsets offsets;
  const auto walk = [&](const auto& self) -> bool {
    const size_t i = offsets.size();
    if (i == buffers.size()) return true;
    for (int64_t at = 0; at + buffers[i].size.count() <= capacity; ++at) {
      bool free = true;
      for (size_t j = 0; j < i && free; ++j) {
        free = !meet(buffers[i], buffers[j]) || Offset(at) >= offsets[j] + buffers[j].size ||
               offsets[j] >= Offset(at) + buffers[i].size;
      }
      if (!free) continue;
      offsets.emplace_back(at);
      if (self(self)) return true;
      offsets.pop_back();
    }
    return false;
  };
  return walk(walk);
}

TEST(LayoutTest, LiteralProblem) {
  //  3 | . b b .     a, c and d fit round b only if a and d lie above or below it alike.
  //  1 | a a d d
  const std::vector<Buffer> buffers = {{0, 2, Bytes(2)}, {1, 3, Bytes(3)}, {2, 4, Bytes(2)}};
  const Layout layout = plan_layout(buffers);
  EXPECT_EQ(layout.height, Bytes(5));
  EXPECT_TRUE(layout.optimal());
  EXPECT_TRUE(layout_violations(buffers, layout.offsets, layout.height).empty());
}

TEST(LayoutTest, NothingAndEmptyBuffersTakeNoSpace) {
  EXPECT_EQ(plan_layout({}).height, Bytes(0));
  const Layout layout = plan_layout({{0, 0, Bytes(100)}, {0, 5, Bytes(0)}, {3, 5, Bytes(7)}});
  EXPECT_EQ(layout.height, Bytes(7));
  EXPECT_TRUE(layout.optimal());
}

TEST(LayoutTest, EqualsBruteForceOnTinyProblems) {
  for (uint64_t seed = 0; seed < tidemark::testing::cases(300u); ++seed) {
    const std::vector<Buffer> buffers =
        random_buffers(seed, 3 + static_cast<int>(seed % 5), 8, 6);
    const Layout layout = plan_layout(buffers);
    const Bytes least = least_height(buffers);
    EXPECT_EQ(layout.height, least) << seed;
    EXPECT_EQ(layout.bound, least) << seed;
    EXPECT_TRUE(layout_violations(buffers, layout.offsets, layout.height).empty()) << seed;
  }
}

void expect_decision(const std::vector<Buffer>& buffers, Bytes capacity, bool expected) {
  const Stopwatch watch(60);
  for (unsigned bits = 0; bits < 16 * kRankCount; ++bits) {
    ExactSearchOptions options;
    options.decompose = (bits & 1) != 0;
    options.infer_lowest = (bits & 2) != 0;
    options.jump = (bits & 4) != 0;
    const auto walk = static_cast<Walk>(bits / 8 % 2);
    ExactSearch search(buffers, options);
    // Each search runs twice with one object: nothing of a run may remain for the next.
    for (const uint64_t seed : {0, 1}) {
      ASSERT_EQ(
          search.run(capacity, walk, static_cast<Rank>(bits / 16), seed, INT64_MAX, watch),
          expected ? Verdict::kFits : Verdict::kDoesNotFit)
          << bits;
      if (!expected) continue;
      const Bytes top = height(buffers, search.offsets());
      EXPECT_LE(top, capacity);
      EXPECT_TRUE(layout_violations(buffers, search.offsets(), top).empty());
    }
  }
}

// A problem whose least height is above its max load, which is rare.
const std::vector<Buffer> kAboveLoad = {{3, 4, Bytes(1)}, {4, 8, Bytes(4)},  {1, 4, Bytes(1)},
                                        {2, 3, Bytes(1)}, {5, 6, Bytes(1)},  {0, 1, Bytes(4)},
                                        {0, 3, Bytes(4)}, {7, 10, Bytes(4)}, {6, 9, Bytes(1)},
                                        {0, 2, Bytes(1)}, {3, 7, Bytes(2)},  {2, 5, Bytes(3)}};

TEST(ExactSearchTest, ProvesThatTheLoadIsNotEnough) {
  ASSERT_EQ(max_load(kAboveLoad), Bytes(9));
  ASSERT_FALSE(fits(kAboveLoad, 9));
  ASSERT_TRUE(fits(kAboveLoad, 10));
  expect_decision(kAboveLoad, Bytes(9), false);
  expect_decision(kAboveLoad, Bytes(10), true);
  const Layout layout = plan_layout(kAboveLoad);
  EXPECT_EQ(layout.height, Bytes(10));
  EXPECT_EQ(layout.bound, Bytes(10));
}

TEST(LayoutTest, StopsOnceItIsProvenOptimal) {
  LayoutOptions options;
  options.limits.nodes = 1'000'000;
  options.limits.seconds = 1e6;
  const Layout layout = plan_layout(kAboveLoad, options);
  EXPECT_TRUE(layout.optimal());
  EXPECT_LT(layout.nodes, 10'000);
}

TEST(ExactSearchTest, EveryCombinationDecidesAlike) {
  for (uint64_t seed = 0; seed < tidemark::testing::cases(60u); ++seed) {
    const std::vector<Buffer> buffers =
        random_buffers(seed, 5 + static_cast<int>(seed % 8), 7, 4);
    const Bytes load = max_load(buffers);
    expect_decision(buffers, load, fits(buffers, load.count()));
    expect_decision(buffers, load - Bytes(1), false);
  }
}

TEST(ExactSearchTest, LimitsEndIt) {
  const std::vector<Buffer> buffers = random_buffers(1, 200, 100, 1000);
  ExactSearch search(buffers);
  EXPECT_EQ(search.run(max_load(buffers), Walk::kLowest, Rank::kSize, 0, 3, Stopwatch(60)),
            Verdict::kUnknown);
  EXPECT_LE(search.nodes(), 3);
}

// The clock is looked at every 256 nodes, whichever way they are reached.
TEST(ExactSearchTest, TheClockEndsItSoon) {
  const std::atomic<bool> stop = true;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Buffer> buffers = random_buffers(seed, 200, 20, 1000);
    for (const Walk walk : {Walk::kLowest, Walk::kTight}) {
      ExactSearch search(buffers);
      search.run(max_load(buffers), walk, Rank::kLifetime, 0, 100'000, Stopwatch(1e6, &stop));
      EXPECT_LE(search.nodes(), 256) << seed << ' ' << static_cast<int>(walk);
    }
  }
}

TEST(HeuristicsTest, AreValidAndNeverBelowTheLoad) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<Buffer> buffers = random_buffers(seed, 300, 150, 1000);
    const auto check = [&](const Offsets& offsets) {
      const Bytes top = height(buffers, offsets);
      EXPECT_GE(top, max_load(buffers));
      EXPECT_TRUE(layout_violations(buffers, offsets, top).empty());
      return top;
    };
    Bytes best(INT64_MAX);
    for (const Heuristic& heuristic : kHeuristics) {
      SCOPED_TRACE(heuristic.name);
      best = std::min(best, check(heuristic.place(buffers)));
    }
    LayoutOptions options;
    options.limits.nodes = 2000;
    const Layout layout = plan_layout(buffers, options);
    EXPECT_LE(layout.height, best);
    EXPECT_TRUE(layout_violations(buffers, layout.offsets, layout.height).empty());
  }
}

// Covers problems in which many buffers meet and in which few do: these are handled
// differently.
TEST(HeuristicsTest, FirstFitTakesTheLowestPlace) {
  for (const int span : {10, 5000}) {
    const std::vector<Buffer> buffers = random_buffers(3, 400, span, 1000);
    std::vector<size_t> order(buffers.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto key = [&](size_t i) {
        return std::pair(buffers[i].size, buffers[i].end - buffers[i].begin);
      };
      return key(a) > key(b);
    });
    Offsets expected(buffers.size());
    for (size_t k = 0; k < order.size(); ++k) {
      expected[order[k]] = lowest_place(buffers, order, k, expected);
    }
    EXPECT_EQ(first_fit(buffers, FitOrder::kSize), expected) << span;
  }
}

TEST(SkylineFitTest, FillsTheLowestSegmentByPriority) {
  //  3 | b b c c .    c does not lie in [3, 5), the lowest segment once a and d are placed, and
  //  1 | a a d . .    waits until that has risen to d's end.
  //  0 | a a d e e
  const std::vector<Buffer> buffers = {
      {0, 2, Bytes(3)}, {0, 2, Bytes(1)}, {2, 4, Bytes(1)}, {2, 3, Bytes(3)}, {3, 5, Bytes(1)}};
  const Offsets longest_last = SkylineFit(buffers).place({0, 3, 1, 4, 2});
  EXPECT_EQ(longest_last, (Offsets{Offset(0), Offset(3), Offset(3), Offset(0), Offset(0)}));
  const Offsets small_first = SkylineFit(buffers).place({2, 1, 0, 3, 4});
  EXPECT_EQ(small_first, (Offsets{Offset(1), Offset(0), Offset(0), Offset(1), Offset(1)}));
}

TEST(SkylineFitTest, AnyOrderGivesAValidLayout) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Buffer> buffers = random_buffers(seed, 200, 60, 1000);
    std::vector<int> order = longest_first(buffers);
    SkylineFit fit(buffers);
    std::mt19937_64 random(seed);
    for (int k = 0; k < 3; ++k) {
      std::shuffle(order.begin(), order.end(), random);
      const Offsets offsets = fit.place(order);
      EXPECT_TRUE(layout_violations(buffers, offsets, height(buffers, offsets)).empty())
          << seed;
    }
  }
}

TEST(HeuristicsTest, BestFitTakesTheSmallestHoleAndJoinsFreedOnes) {
  // a 4, b 1, c 2, d 1 side by side; a and c end, then e of 2 goes into c's place.
  const std::vector<Buffer> buffers = {{0, 2, Bytes(4)}, {0, 9, Bytes(1)}, {0, 2, Bytes(2)},
                                       {0, 9, Bytes(1)}, {3, 9, Bytes(2)}, {3, 9, Bytes(5)}};
  const Offsets offsets = best_fit_online(buffers);
  EXPECT_EQ(offsets[4], Offset(5));
  EXPECT_EQ(offsets[5], Offset(8));  // no hole of 5: 4 alone is free
}

TEST(HeuristicsTest, CountsMeetings) {
  const std::vector<Buffer> buffers = {
      {0, 2, Bytes(1)}, {1, 3, Bytes(1)}, {2, 4, Bytes(1)}, {0, 4, Bytes(0)}};
  EXPECT_EQ(count_meetings(buffers, 100), 2);
  EXPECT_EQ(count_meetings(buffers, 1), 1);
}

TEST(LayoutTest, SameNodesAndSeedGiveTheSameLayout) {
  const std::vector<Buffer> buffers = random_buffers(7, 400, 100, 1000);
  LayoutOptions options;
  options.limits.nodes = 30'000;
  options.limits.seconds = 1e6;
  const Layout first = plan_layout(buffers, options), second = plan_layout(buffers, options);
  EXPECT_EQ(first.offsets, second.offsets);
  EXPECT_EQ(first.nodes, second.nodes);
  EXPECT_EQ(first.bound, second.bound);
}

TEST(LayoutTest, StopsAtTheTargetAndAtOnceWithoutTime) {
  const std::vector<Buffer> buffers = random_buffers(7, 400, 100, 1000);
  LayoutOptions options;
  options.target = 2 * max_load(buffers);
  EXPECT_EQ(plan_layout(buffers, options).nodes, 0);
  options.target = Bytes(0);
  options.limits.seconds = 0;
  const Layout layout = plan_layout(buffers, options);
  EXPECT_EQ(layout.nodes, 0);
  EXPECT_TRUE(layout_violations(buffers, layout.offsets, layout.height).empty());
}

TEST(LayoutTest, ManyBuffers) {
  const std::vector<Buffer> buffers = random_buffers(3, 200'000, 100'000, 1 << 20);
  const Layout layout = plan_layout(buffers, {.limits = {.nodes = 1000}});
  EXPECT_TRUE(layout_violations(buffers, layout.offsets, layout.height).empty());
  EXPECT_GE(layout.height, layout.bound);
}

// Parts per million above the load, by a few steps of search.
TEST(LayoutTest, TrainingStepsOfManyBuffersAreNearTheirLoad) {
  struct Case {
    uint64_t seed;
    int64_t above;
  };
  for (const auto& [seed, above] : {Case{4, 297}, Case{8, 991}, Case{14, 0}}) {
    if (tidemark::testing::kSanitized && seed > 4) break;
    const std::vector<Buffer> buffers = bench::TrainingBuffers::make(seed, 20'000);
    LayoutOptions options;
    options.limits.nodes = 2500;
    options.limits.seconds = 1e6;
    const Layout layout = plan_layout(buffers, options);
    EXPECT_EQ((layout.height - layout.bound).count() * 1'000'000 / layout.bound.count(), above)
        << seed;
    EXPECT_TRUE(layout_violations(buffers, layout.offsets, layout.height).empty());
  }
}

// Variants fit wherever the problem does, and every change is among them.
TEST(LayoutTest, AVariantsLayoutIsTheProblemsCut) {
  const std::vector<Buffer> buffers = random_buffers(5, 60, 40, 1000);
  const Layout layout = plan_layout(buffers, {.limits = {.nodes = 1000}});
  std::set<std::string> changes;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const bench::LayoutVariant variant(buffers, seed);
    const Offsets cut = variant.cut(layout.offsets);
    const Bytes top = height(variant.buffers(), cut);
    EXPECT_LE(top, layout.height);
    EXPECT_TRUE(layout_violations(variant.buffers(), cut, top).empty()) << seed;
    changes.insert(variant.change());
  }
  EXPECT_EQ(changes.size(), 6);
}

TEST(LayoutTest, RefusesWhatHasNoMeaning) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(plan_layout({{0, 1, Bytes(-1)}}), UsageError);
  EXPECT_THROW(plan_layout({{2, 1, Bytes(1)}}), UsageError);
  EXPECT_THROW(plan_layout({{-kMax, kMax, Bytes(1)}}), UsageError);
  EXPECT_THROW(plan_layout({{0, 1, Bytes(kMax)}, {5, 6, Bytes(1)}}), UsageError);
}

}  // namespace
// Some buffers have fixed places. The others go below the capacity; their bytes are reused
// after the reluctant end wherever there is space for that.
TEST(FitWithin, KeepsFixedPlacesTheCapacityAndLifetimes) {
  int found = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&](int64_t n) { return static_cast<int64_t>(random() % (n + 1)); };
    std::vector<Buffer> buffers;
    std::vector<std::optional<Offset>> fixed;
    Offset to(0);
    for (int k = 0; k < 4; ++k) {  // buffers that begin before all others
      buffers.push_back({-1, k % 2 ? 40 : 5 + upto(10), kAlignment * (1 + upto(4))});
      fixed.emplace_back(to);
      to = to + buffers.back().size;
    }
    for (int k = 0; k < 60; ++k) {
      const int64_t begin = upto(38);
      buffers.push_back({begin, begin + 1 + upto(6), kAlignment * (1 + upto(4))});
      fixed.emplace_back();
    }
    std::vector<Buffer> reluctant = buffers;
    for (Buffer& buffer : reluctant) buffer.end += upto(3);
    const Bytes load = max_load(buffers);
    const auto ample = fit_within(buffers, reluctant, fixed, 3 * load);
    ASSERT_TRUE(ample) << seed;
    EXPECT_TRUE(layout_violations(reluctant, *ample, height(reluctant, *ample)).empty());
    const Bytes tight = load + kAlignment * 4;
    const auto offsets = fit_within(buffers, reluctant, fixed, tight);
    found += offsets ? 1 : 0;
    if (!offsets) continue;
    EXPECT_TRUE(layout_violations(buffers, *offsets, height(buffers, *offsets)).empty());
    EXPECT_LE(height(buffers, *offsets), tight);
    for (size_t k = 0; k < 4; ++k) EXPECT_EQ((*offsets)[k], *fixed[k]);
  }
  EXPECT_GT(found, 50);
  const std::vector<Buffer> two{{0, 2, kAlignment * 3}, {1, 3, kAlignment * 3}};
  EXPECT_FALSE(fit_within(two, two, {std::nullopt, std::nullopt}, kAlignment * 5));
}

}  // namespace tidemark::planner
