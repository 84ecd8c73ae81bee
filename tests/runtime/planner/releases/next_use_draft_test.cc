// Drafts by next use, for hand-written steps and random ones.
#include "runtime/planner/releases/next_use_draft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/planner/releases/kept_sources.h"
#include "runtime/planner/releases/step_simulator.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

using Releases = std::vector<PlannedRelease>;

constexpr double kLowPrice = 0.01;

// "evict 2: 3-7" and "copy 0: 1-9, back at 6", one per line.
std::string describe(const Releases& releases) {
  std::string text;
  for (const PlannedRelease& release : releases) {
    const bool copy = release.action == Release::kOffload;
    text += std::string(copy ? "copy " : "evict ") + std::to_string(release.item) + ": " +
            std::to_string(release.from) + "-" + std::to_string(release.to) +
            (copy ? ", back at " + std::to_string(release.reload_at) : "") + "\n";
  }
  return text;
}

struct Step {
  explicit Step(const TraceBuilder& record) : Step(record.trace()) {}
  explicit Step(const StepTrace& of) : trace(with_kept_sources(of)), table(trace) {}
  StepTrace trace;
  StepTable table;
};

// Weights of 2 units, read forwards and then backwards; each layer's result is read backwards
// too. Of the weights, four fit.
TraceBuilder layers_that_do_not_fit(int layers) {
  TraceBuilder record;
  std::vector<uint32_t> weights, results;
  for (int i = 0; i < layers; ++i) weights.push_back(record.outside(2, /*persistent=*/true));
  for (int i = 0; i < layers; ++i) {
    const std::vector<uint32_t> last =
        results.empty() ? std::vector<uint32_t>{} : std::vector<uint32_t>{results.back()};
    std::vector<uint32_t> inputs{weights[static_cast<size_t>(i)]};
    inputs.insert(inputs.end(), last.begin(), last.end());
    results.push_back(record.call(inputs, 1000));
  }
  for (int i = layers; i-- > 0;) {
    const auto at = static_cast<size_t>(i);
    record.run({weights[at], results[at]}, 1000);
  }
  return record;
}

TEST(NextUseDraft, KeepsTheWeightsAroundTheTurn) {
  const Step step(layers_that_do_not_fit(6));
  const PlanLimits limits = copy_within(/*room=*/10, /*nanos_per_unit=*/200);
  const Releases draft = draft_by_next_use(step.table, limits, kLowPrice);
  StepSimulator simulator(step.trace, step.table, limits);
  const auto outcome = simulator.run(draft);
  EXPECT_EQ(outcome.shortfall, Bytes(0));
  EXPECT_LE(outcome.waited, Nanos(200)) << "the link has time for nearly all copies";
  for (const PlannedRelease& release : draft) {
    const bool is_weight = release.item < 6;
    EXPECT_FALSE(is_weight && !release.wraps() && release.item >= 4) << "read again at once";
    EXPECT_FALSE(release.wraps() && release.item <= 1) << "the next step begins with it";
  }
}

// What is quicker to compute again than to wait for is evicted.
TEST(NextUseDraft, EvictsWhatWouldBeWaitedFor) {
  TraceBuilder record;
  const uint32_t cheap = record.call({}, 100), dear = record.call({}, 5000);
  record.run({}, 1000, /*workspace=*/2);
  record.idle(1, 1000);
  record.run({dear}, 100);
  record.run({cheap}, 100);
  const auto within = [&](int64_t nanos_per_unit, double price) {
    return describe(
        draft_by_next_use(Step(record).table, copy_within(2, nanos_per_unit), price));
  };
  EXPECT_EQ(within(40, kLowPrice), "copy 0: 0-5, back at 3\ncopy 1: 1-4, back at 2\n");
  EXPECT_EQ(within(2000, kLowPrice), "evict 0: 0-5\ncopy 1: 1-4, back at 2\n");
  EXPECT_EQ(within(80, /*price=*/1), "evict 0: 0-5\ncopy 1: 1-4, back at 2\n");
}

// A copy that is busy with another begins earlier.
TEST(NextUseDraft, BooksTheLink) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 1000), b = record.call({}, 1000);
  for (const uint32_t item : {a, b}) record.item(item).may_evict = false;
  record.run({}, 1000, /*workspace=*/2);
  record.idle(4, 1000);
  record.run({a, b}, 1000);
  EXPECT_EQ(describe(draft_by_next_use(Step(record).table, copy_within(2, 1000), kLowPrice)),
            "copy 0: 0-7, back at 4\ncopy 1: 1-7, back at 5\n");
}

// Each block reads the one before twice, once by way of a result that the program drops: to
// walk every path of 60 blocks would take for ever.
TEST(NextUseDraft, LooksAtEachCallOnceForARecomputation) {
  constexpr int kBlocks = 60;
  TraceBuilder record;
  std::vector<uint32_t> results{record.call({}, 10)};
  for (int i = 0; i < kBlocks; ++i) {
    const uint32_t on_the_way = record.call({results.back()}, 10);
    results.push_back(record.call({results.back(), on_the_way}, 10));
  }
  record.run({}, 100'000, /*workspace=*/kBlocks);
  record.idle(1, 100'000);
  for (size_t i = results.size(); i-- > 0;) record.run({results[i]}, 10);
  const Step step(record);
  const PlanLimits limits = copy_within(/*room=*/kBlocks + 4, /*nanos_per_unit=*/1'000'000);
  const Releases draft = draft_by_next_use(step.table, limits, kLowPrice);
  const auto evicted = std::count_if(draft.begin(), draft.end(), [](const PlannedRelease& it) {
    return it.action == Release::kEvict;
  });
  EXPECT_GT(evicted, kBlocks / 2);
}

TEST(NextUseDraft, KeepsEverythingThatFits) {
  const Step step(layers_that_do_not_fit(6));
  EXPECT_TRUE(draft_by_next_use(step.table, copy_within(100, 200), kLowPrice).empty());
}

TEST(NextUseDraft, OfRandomStepsReleasesGaps) {
  int evictions = 0, copies = 0, over_the_end = 0, short_before = 0, short_after = 0,
      short_by_peak = 0;
  for (uint32_t seed = 1; seed <= cases(1000u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Step step(random_trace(random));
    const Bytes unmanaged = draft_releases(step.table, evict_within(1)).unmanaged;
    PlanLimits limits = copy_within(1, 1 + random() % 1000, 1 + random() % 40);
    limits.space = align_down(Bytes(unmanaged.count() / 100 * (30 + random() % 80)));
    const double price = random() % 2 == 0 ? kLowPrice : 1;
    const Releases draft = draft_by_next_use(step.table, limits, price);
    ASSERT_EQ(describe(draft_by_next_use(step.table, limits, price)), describe(draft));

    std::set<std::tuple<uint32_t, uint32_t, uint32_t>> gaps;
    for (const Gap& gap : find_gaps(step.table, Bytes(1))) {
      gaps.insert({gap.item, gap.from, gap.to});
    }
    std::set<uint32_t> copied;
    Bytes on_tier{0};
    for (const PlannedRelease& release : draft) {
      const StepTable::Item& item = step.table.items[release.item];
      EXPECT_EQ(gaps.erase({release.item, release.from, release.to}), 1U) << "once per gap";
      over_the_end += release.wraps();
      if (release.action == Release::kEvict) {
        ++evictions;
        EXPECT_TRUE(item.may_evict && item.producer != StepTable::kNone && !release.wraps());
        continue;
      }
      ++copies;
      EXPECT_TRUE(item.may_offload);
      const bool stays_away = release.to == step.table.calls.size();
      EXPECT_LT(release.reload_at, std::max(release.to, 1U) + (stays_away ? 1 : 0));
      EXPECT_TRUE(release.wraps() || release.reload_at > release.from);
      if (copied.insert(release.item).second) on_tier += item.bytes;
    }
    EXPECT_LE(on_tier, limits.tier_space);
    StepSimulator simulator(step.trace, step.table, limits);
    short_before += simulator.run({}).shortfall > Bytes(0);
    short_after += simulator.run(draft).shortfall > Bytes(0);
    short_by_peak +=
        simulator.run(draft_releases(step.table, limits).releases).shortfall > Bytes(0);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(evictions, cases(1000));
  EXPECT_GT(copies, cases(1000));
  EXPECT_GT(over_the_end, cases(100));
  EXPECT_LT(short_after, short_by_peak);
  EXPECT_LT(short_by_peak, short_before);
}

}  // namespace
}  // namespace tidemark::planner::testing
