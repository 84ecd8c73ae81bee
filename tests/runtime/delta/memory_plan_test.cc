// Whole plans: that no two blocks that meet in time share a byte, with the step's own blocks
// and with strangers, and that there is none where nothing fits.
#include "runtime/delta/tide/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>

#include "tests/runtime/delta/step_record_builder.h"

namespace tidemark::testing {
namespace {

// A little more than so many units, as plans spare some room for blocks that do not lie close.
PlanLimits just_above(int64_t room) {
  return {.room = align_up(Bytes(units(room).count() * 21 / 20))};
}

// Counts what was seen, so that a test can tell that it was not empty.
struct Seen {
  int placed = 0, slid = 0, none = 0, releasing = 0;
};

bool meet(const MemoryEvents& memory, size_t a, size_t b) {
  const MemoryEvents::Block &x = memory.blocks[a], &y = memory.blocks[b];
  if (a < memory.there && b < memory.there) return true;  // before the first event
  return std::max(x.begin, y.begin) < std::min(x.end, y.end);
}

bool apart(const Block& a, const Block& b) {
  return a.end() <= b.offset || b.end() <= a.offset;
}

void check_layout(const MemoryPlan& plan, const PlanLimits& limits,
                  const std::vector<Bytes>& strangers) {
  const MemoryEvents& memory = plan.memory;
  std::vector<Bytes> sizes;
  for (const Block& stranger : plan.strangers) sizes.push_back(stranger.size);
  EXPECT_EQ(sizes, strangers);
  if (!plan.placed()) return;
  ASSERT_EQ(plan.offsets.size(), memory.blocks.size());
  const Offset top = Offset(0) + limits.room;
  std::vector<Block> blocks;
  for (size_t b = 0; b < memory.blocks.size(); ++b) {
    blocks.push_back({plan.offsets[b], memory.blocks[b].size});
  }
  for (size_t a = 0; a < blocks.size(); ++a) {
    EXPECT_GE(blocks[a].offset, Offset(0));
    EXPECT_LE(blocks[a].end(), top);
    for (size_t b = 0; b < a; ++b) {
      EXPECT_TRUE(!meet(memory, a, b) || apart(blocks[a], blocks[b])) << a << " and " << b;
    }
    for (const Block& stranger : plan.strangers) EXPECT_TRUE(apart(blocks[a], stranger)) << a;
  }
  for (size_t a = 0; a < plan.strangers.size(); ++a) {
    EXPECT_LE(plan.strangers[a].end(), top);
    for (size_t b = 0; b < a; ++b) EXPECT_TRUE(apart(plan.strangers[a], plan.strangers[b]));
  }
}

std::optional<MemoryPlan> checked(const StepRecord& step, const PlanLimits& limits,
                                  const std::vector<Bytes>& strangers = {},
                                  std::vector<PlannedRelease> draft = {}) {
  auto plan = make_memory_plan(step, limits, strangers, std::move(draft));
  if (!plan) return plan;
  check_layout(*plan, limits, strangers);
  // It is what its releases say.
  Bytes room = limits.room;
  for (const Bytes size : strangers) room -= size;
  EXPECT_TRUE(plan->expected.possible);
  PlanLimits within = limits;
  within.room = room;
  if (!plan->placed()) {
    const auto again = StepRehearsal(step, within).run(plan->releases);
    EXPECT_EQ(again.time, plan->expected.time);
    EXPECT_LE(again.lacking.count(), room.count() / 10)
        << "more than is to be released by price";
  }
  return plan;
}

std::string text(const std::vector<PlannedRelease>& releases) {
  std::string text;
  for (const PlannedRelease& release : releases) {
    text += release.action == Action::kOffload ? "copy " : "evict ";
    text += std::to_string(release.item) + ", ";
  }
  return text;
}

// a b c are made in turn and wanted in the reverse order.
RecordBuilder tower(int64_t cost_a, int64_t cost_b, int64_t cost_c, int64_t size = 1) {
  RecordBuilder record;
  const uint32_t a = record.call({}, cost_a, size), b = record.call({}, cost_b, size),
                 c = record.call({}, cost_c, size);
  for (const uint32_t item : {c, b, a}) record.run({item}, 10'000);
  return record;
}

TEST(MemoryPlan, PlacesAStepThatFits) {
  const auto plan = checked(tower(1, 1, 1).step(), just_above(3));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->placed());
  EXPECT_TRUE(plan->releases.empty());
  EXPECT_EQ(plan->expected.time, Nanos(30'003));
  EXPECT_EQ(plan->memory.blocks.size(), 3U);
}

TEST(MemoryPlan, ReleasesWhatDoesNotFit) {
  const auto plan = checked(tower(300, 100, 200).step(), just_above(2));
  ASSERT_TRUE(plan && plan->placed());
  EXPECT_EQ(text(plan->releases), "evict 1, ");
  EXPECT_EQ(plan->expected.recomputed, Nanos(100));
}

TEST(MemoryPlan, IsNoneWhereNothingFits) {
  const StepRecord step = tower(1, 1, 1).step();
  EXPECT_TRUE(checked(step, evict_within(1)));
  EXPECT_FALSE(checked(step, {.room = Bytes(units(1).count() / 2)}));
  EXPECT_FALSE(checked(step, evict_within(1), {Bytes(units(1).count() / 2)}));
  EXPECT_FALSE(checked(tower(1, 1, 1, 4).step(), evict_within(3))) << "not even one of them";
  RecordBuilder kept = tower(1, 1, 1);
  for (const uint32_t item : {0U, 1U, 2U}) kept.item(item).may_evict = false;
  EXPECT_FALSE(checked(kept.step(), copy_within(2, 1, /*tier=*/0)));
  EXPECT_TRUE(checked(kept.step(), copy_within(2, 1)));
  EXPECT_FALSE(checked(tower(1, 1, 1).step(), evict_within(3), {units(3)}));
  EXPECT_FALSE(checked(tower(1, 1, 1).step(), evict_within(3), {units(4)}));
}

// What is none of the step's has a place of its own all the time; the step has the rest.
TEST(MemoryPlan, LeavesRoomForStrangers) {
  const StepRecord step = tower(300, 100, 200).step();
  const auto plan = checked(step, just_above(6), {units(1), units(2)});
  ASSERT_TRUE(plan && plan->placed());
  EXPECT_TRUE(plan->releases.empty());
  const auto tight = checked(step, just_above(5), {units(1), units(2)});
  ASSERT_TRUE(tight && tight->placed());
  EXPECT_EQ(text(tight->releases), "evict 1, ");
}

// Of two ways that cost the same it keeps to the one that it was given.
TEST(MemoryPlan, BeginsWithTheDraft) {
  RecordBuilder record;
  const uint32_t a = record.call({}, 100), b = record.call({}, 100);
  record.run({}, 10'000, /*workspace=*/1);
  record.run({a, b}, 10'000);
  for (const uint32_t item : {a, b}) {
    const std::vector<PlannedRelease> draft{{item, item, 3, Action::kEvict, 0}};
    const auto plan = checked(record.step(), just_above(2), {}, draft);
    ASSERT_TRUE(plan);
    EXPECT_EQ(text(plan->releases), text(draft));
  }
}

TEST(MemoryPlan, OfRandomStepsIsLaidOut) {
  Seen seen;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const StepRecord step = random_record(random);
    const int64_t unmanaged = make_release_plan(step, evict_within(1)).unmanaged.count();
    PlanLimits limits = copy_within(1, 1 + static_cast<int64_t>(random() % 500),
                                    static_cast<int64_t>(random() % 2) * 1000);
    const auto percent = 60 + static_cast<int64_t>(random() % 80);
    limits.room = align_down(Bytes(unmanaged * percent / 100));
    std::vector<Bytes> strangers;
    for (uint32_t s = random() % 3; s > 0; --s) {
      strangers.push_back(units(1 + static_cast<int64_t>(random() % 2)));
    }
    const auto plan = checked(step, limits, strangers);
    if (!plan) {
      ++seen.none;
      continue;
    }
    ++(plan->placed() ? seen.placed : seen.slid);
    seen.releasing += !plan->releases.empty();
  }
  EXPECT_GE(seen.placed, 80);
  EXPECT_GE(seen.releasing, 40);
}

// Everything has to stay, and fills the room to the last byte again and again. Two go at a
// time, and what comes next is sometimes as large as both: they have to lie side by side.
StepRecord crowded_record(int64_t room, std::mt19937& random) {
  RecordBuilder record;
  std::vector<uint32_t> live;
  int64_t used = 0, least = 1;
  for (int k = 0; k < 30; ++k) {
    const int64_t size =
        std::min(room - used, std::max(least, 1 + static_cast<int64_t>(random() % 3)));
    live.push_back(record.call({}, 100, size));
    record.item(live.back()).may_evict = record.item(live.back()).may_offload = false;
    used += size;
    least = 1;
    if (used < room) continue;
    std::shuffle(live.begin(), live.end(), random);
    for (int gone = 0; gone < 2 && !live.empty(); ++gone) {
      record.run({live.back()});
      used -= record.item(live.back()).bytes.count() / kRecordUnit.count();
      live.pop_back();
    }
    if (random() % 2 == 0) least = room - used;
  }
  record.run(live);
  return record.step();
}

TEST(MemoryPlan, SlidesWhereNoLayoutIsFound) {
  constexpr int64_t kRoom = 12;
  Seen seen;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const StepRecord step = crowded_record(kRoom, random);
    const auto plan = checked(step, evict_within(kRoom + 1), {units(1)});
    ASSERT_TRUE(plan);
    EXPECT_TRUE(plan->releases.empty());
    EXPECT_EQ(plan->expected.time, step.duration);
    EXPECT_EQ(plan->memory.blocks.size(), step.items.size());
    ++(plan->placed() ? seen.placed : seen.slid);
    EXPECT_FALSE(checked(step, evict_within(kRoom - 1), {units(1)}));
  }
  EXPECT_GT(seen.slid, 0);
  EXPECT_GT(seen.placed, 0);
}

}  // namespace
}  // namespace tidemark::testing
