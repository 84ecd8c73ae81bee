// Tests the choices for each gap, that changes can be taken back, and which gaps are alike.
#include "runtime/planner/releases/release_choices.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

using Releases = std::vector<PlannedRelease>;

// "0 1-4 evict, 2 0-5 back at 4".
std::string text(const ReleaseChoices& choices) {
  Releases releases;
  choices.write(releases);
  std::string text;
  for (const PlannedRelease& release : releases) {
    text +=
        (text.empty() ? "" : ", ") + std::to_string(release.item) + " " +
        std::to_string(release.from) + "-" + std::to_string(release.to) +
        (release.action == Release::kEvict ? " evict"
                                           : " back at " + std::to_string(release.reload_at));
  }
  return text;
}

// Three layers. Each makes two items, which the backward pass reads; item 0 is a parameter.
TraceBuilder layers() {
  TraceBuilder record;
  const uint32_t parameter = record.outside(1, /*persistent=*/true);
  std::vector<uint32_t> made;
  for (int layer = 0; layer < 3; ++layer) {
    for (const uint64_t kind : {1, 2}) {
      made.push_back(record.call({parameter}, 100, /*size=*/2));
      record.last().signature = kind;
    }
  }
  for (size_t i = made.size(); i-- > 0;) record.run({made[i]}, 100);
  return record;
}

TEST(ReleaseChoices, AreTheGapsThatMayBeUsed) {
  TraceBuilder record = layers();
  const StepTable& step = record.step();
  const PlanLimits within = copy_within(4, 1);
  const ReleaseChoices all(step, within, {}, Bytes(0));
  // The parameter's gap wraps over the step's end. All items have one but the last, which is
  // read at once.
  ASSERT_EQ(all.size(), 6U);
  const ReleaseChoices large(step, within, {}, units(2));
  EXPECT_EQ(large.size(), 5U);
  const PlanLimits no_tier = evict_within(4);
  const ReleaseChoices evictions(step, no_tier, {}, Bytes(0));
  EXPECT_EQ(evictions.size(), 5U) << "the parameter cannot be computed";
  for (size_t i = 0; i < evictions.size(); ++i) {
    EXPECT_TRUE(evictions.may_evict(i));
    EXPECT_FALSE(evictions.may_offload(i));
  }
  record.item(1).may_evict = false;
  EXPECT_EQ(ReleaseChoices(record.step(), no_tier, {}, Bytes(0)).size(), 4U);
}

TEST(ReleaseChoices, BeginAsDrafted) {
  const TraceBuilder record = layers();
  const PlanLimits limits = copy_within(4, 1);
  const Releases draft{{2, 1, 10, Release::kOffload, 7},
                       {1, 0, 11, Release::kEvict, 0},
                       {1, 3, 11, Release::kEvict, 0}};  // no such gap
  const ReleaseChoices choices(record.step(), limits, draft, Bytes(0));
  EXPECT_EQ(text(choices), "1 0-11 evict, 2 1-10 back at 7");
  EXPECT_EQ(choices.copied(), units(2));
  EXPECT_FALSE(choices.changed());
}

TEST(ReleaseChoices, ChangeAndAreTakenBack) {
  const TraceBuilder record = layers();
  const PlanLimits limits = copy_within(4, 50);
  ReleaseChoices choices(record.step(), limits, {{1, 0, 11, Release::kEvict, 0}}, units(2));
  choices.evict(0);
  EXPECT_FALSE(choices.changed()) << "it was evicted";
  choices.keep(1);
  EXPECT_FALSE(choices.changed()) << "it was kept";
  choices.offload(0, 1);
  choices.evict(1);
  choices.offload(1, 3);
  choices.keep(0);
  EXPECT_TRUE(choices.changed());
  // A copy takes 100, as a call does: three times as early is three calls before the use.
  EXPECT_EQ(text(choices), "2 1-10 back at 7");
  choices.take_back();
  EXPECT_FALSE(choices.changed());
  EXPECT_EQ(text(choices), "1 0-11 evict");
  choices.keep(0);
  choices.settle();
  EXPECT_FALSE(choices.changed());
  choices.take_back();
  EXPECT_EQ(text(choices), "") << "what is settled stays";
}

TEST(ReleaseChoices, KnowWhichLayersAreAlike) {
  const TraceBuilder record = layers();
  const PlanLimits limits = copy_within(4, 1);
  const ReleaseChoices choices(record.step(), limits, {}, units(2));
  ASSERT_EQ(choices.size(), 5U);
  EXPECT_EQ(choices.alike(0), (std::vector<size_t>{0, 2, 4}));
  EXPECT_EQ(choices.alike(3), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(choices.from(4), 4U);
}

TEST(ReleaseChoices, MeetWhereBothMayBeAway) {
  TraceBuilder record;
  const uint32_t a = record.call({});
  record.idle(1);
  record.run({a});
  const uint32_t b = record.call({});
  record.idle(1);
  record.run({a});
  record.run({b});
  const PlanLimits limits = evict_within(1);
  const ReleaseChoices choices(record.step(), limits, {}, Bytes(0));
  ASSERT_EQ(choices.size(), 3U);  // a 0-2, a 2-5, b 3-6
  EXPECT_FALSE(choices.meet(0, 1));
  EXPECT_FALSE(choices.meet(0, 2));
  EXPECT_TRUE(choices.meet(1, 2));
}

}  // namespace
}  // namespace tidemark::planner::testing
