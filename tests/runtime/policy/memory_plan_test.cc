// Whole plans: that no two blocks share a byte at a time, with the step's own blocks and with
// strangers, that only what may move does, and that there is none where nothing fits.
#include "runtime/policy/tide/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "tests/runtime/policy/trace_builder.h"

namespace tidemark::testing {
namespace {

// A little more than so many units, as plans spare some room for blocks that do not lie close.
PlanLimits just_above(int64_t room) {
  return {.room = align_up(Bytes(units(room).count() * 21 / 20))};
}

// Counts what was seen, so that a test can tell that it was not empty.
struct Seen {
  int placed = 0, moving = 0, slid = 0, none = 0, releasing = 0;
};

// Goes through a plan's events with its blocks in an arena of that capacity.
class Arena {
 public:
  Arena(const MemoryPlan& plan, Bytes capacity) : plan_(plan), capacity_(capacity) {
    for (const Block& stranger : plan.strangers) put(stranger);
  }
  void check() {
    const MemoryEvents& memory = plan_.memory;
    ASSERT_EQ(plan_.offsets.size(), memory.blocks.size());
    for (size_t b = 0; b < memory.there; ++b) take(b);
    size_t next = memory.there, move = 0;
    for (size_t e = 0; e <= memory.events.size(); ++e) {
      for (size_t b = 0; b < next; ++b) {
        if (memory.blocks[b].end == e) there_.erase(b);
      }
      for (; move < plan_.moves.size() && plan_.moves[move].event == e; ++move) {
        go(plan_.moves[move]);
      }
      for (; next < memory.blocks.size() && memory.blocks[next].begin == e; ++next) take(next);
    }
    EXPECT_EQ(move, plan_.moves.size());
    EXPECT_EQ(next, memory.blocks.size());
    EXPECT_LE(moved_, plan_.moved);
  }

 private:
  void put(const Block& block) {
    EXPECT_GE(block.offset, Offset(0));
    EXPECT_LE(block.end(), Offset(0) + capacity_);
    for (const Block& other : strangers_) EXPECT_TRUE(apart(block, other));
    strangers_.push_back(block);
  }
  void take(size_t b) { lay(b, plan_.offsets[b]); }
  void lay(size_t b, Offset offset) {
    const Block block{offset, plan_.memory.blocks[b].size};
    EXPECT_GE(block.offset, Offset(0));
    EXPECT_LE(block.end(), Offset(0) + capacity_);
    for (const Block& other : strangers_) EXPECT_TRUE(apart(block, other)) << b;
    for (const auto& [c, other] : there_) EXPECT_TRUE(apart(block, other)) << b << ", " << c;
    there_[b] = block;
  }
  void go(const MemoryMove& move) {
    const auto at = there_.find(move.block);
    ASSERT_TRUE(at != there_.end()) << "only what is there can move";
    EXPECT_NE(plan_.memory.blocks[move.block].item, MemoryEvents::kScratch);
    for (const MemoryEvents::Stay& stay : plan_.memory.stays) {
      EXPECT_TRUE(stay.block != move.block || move.event <= stay.begin ||
                  move.event >= stay.end)
          << "block " << move.block << " moves before event " << move.event;
    }
    const Block before = at->second;
    EXPECT_TRUE(move.to < before.offset || move.to >= before.end());
    there_.erase(at);
    lay(move.block, move.to);
    moved_ += before.size;
  }
  static bool apart(const Block& a, const Block& b) {
    return a.end() <= b.offset || b.end() <= a.offset;
  }

  const MemoryPlan& plan_;
  const Bytes capacity_;
  std::vector<Block> strangers_;
  std::map<size_t, Block> there_;  // by number
  Bytes moved_{0};
};

void check_layout(const MemoryPlan& plan, const PlanLimits& limits,
                  const std::vector<Bytes>& strangers) {
  std::vector<Bytes> sizes;
  for (const Block& stranger : plan.strangers) sizes.push_back(stranger.size);
  EXPECT_EQ(sizes, strangers);
  if (plan.placed()) Arena(plan, limits.room).check();
}

std::optional<MemoryPlan> checked(const StepTable& step, const PlanLimits& limits,
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
TraceBuilder tower(int64_t cost_a, int64_t cost_b, int64_t cost_c, int64_t size = 1) {
  TraceBuilder record;
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
  const StepTable step = tower(1, 1, 1).step();
  EXPECT_TRUE(checked(step, evict_within(1)));
  EXPECT_FALSE(checked(step, {.room = Bytes(units(1).count() / 2)}));
  EXPECT_FALSE(checked(step, evict_within(1), {Bytes(units(1).count() / 2)}));
  EXPECT_FALSE(checked(tower(1, 1, 1, 4).step(), evict_within(3))) << "not even one of them";
  TraceBuilder kept = tower(1, 1, 1);
  for (const uint32_t item : {0U, 1U, 2U}) kept.item(item).may_evict = false;
  EXPECT_FALSE(checked(kept.step(), copy_within(2, 1, /*tier=*/0)));
  EXPECT_TRUE(checked(kept.step(), copy_within(2, 1)));
  EXPECT_FALSE(checked(tower(1, 1, 1).step(), evict_within(3), {units(3)}));
  EXPECT_FALSE(checked(tower(1, 1, 1).step(), evict_within(3), {units(4)}));
}

// What is none of the step's has a place of its own all the time; the step has the rest.
TEST(MemoryPlan, LeavesRoomForStrangers) {
  const StepTable step = tower(300, 100, 200).step();
  const auto plan = checked(step, just_above(6), {units(1), units(2)});
  ASSERT_TRUE(plan && plan->placed());
  EXPECT_TRUE(plan->releases.empty());
  const auto tight = checked(step, just_above(5), {units(1), units(2)});
  ASSERT_TRUE(tight && tight->placed());
  EXPECT_EQ(text(tight->releases), "evict 1, ");
}

// Of two ways that cost the same it keeps to the one that it was given.
TEST(MemoryPlan, BeginsWithTheDraft) {
  TraceBuilder record;
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
    const StepTable step = random_step(random);
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
    seen.moving += !plan->moves.empty();
    seen.releasing += !plan->releases.empty();
  }
  EXPECT_GE(seen.placed, 80);
  EXPECT_GE(seen.moving, 10);
  EXPECT_GE(seen.releasing, 40);
}

// Everything has to stay, and fills the room to the last byte again and again. Two go at a
// time, and what comes next is sometimes as large as both: they have to lie side by side.
StepTable crowded_step(int64_t room, std::mt19937& random) {
  TraceBuilder record;
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
      used -= record.item(live.back()).size.count() / kRecordUnit.count();
      live.pop_back();
    }
    if (random() % 2 == 0) least = room - used;
  }
  record.run(live);
  return record.step();
}

TEST(MemoryPlan, MovesWhatIsInTheWay) {
  constexpr int64_t kRoom = 12;
  Seen seen;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const StepTable step = crowded_step(kRoom, random);
    const auto plan = checked(step, evict_within(kRoom + 1), {units(1)});
    ASSERT_TRUE(plan && plan->placed());
    EXPECT_TRUE(plan->releases.empty());
    EXPECT_EQ(plan->expected.time, step.duration);
    EXPECT_EQ(plan->memory.blocks.size(), step.items.size());
    seen.moving += !plan->moves.empty();
    EXPECT_FALSE(checked(step, evict_within(kRoom - 1), {units(1)}));
  }
  EXPECT_GT(seen.moving, 20);
  EXPECT_LT(seen.moving, 100) << "some lie well without";
}

// Some of it will have to be released by price, so no place is sure.
TEST(MemoryPlan, HasNoPlacesWhereALittleLacks) {
  const auto of = [](int items) {
    TraceBuilder record;
    std::vector<uint32_t> made;
    for (int i = 0; i < items; ++i) {
      made.push_back(record.call({}));
      record.item(made.back()).may_evict = record.item(made.back()).may_offload = false;
    }
    record.run(made);
    return record.step();
  };
  const auto plan = checked(of(11), evict_within(11), {units(1)});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->placed());
  EXPECT_TRUE(plan->moves.empty());
  EXPECT_EQ(plan->expected.lacking, units(1));
  EXPECT_FALSE(checked(of(12), evict_within(11), {units(1)}));
  EXPECT_TRUE(checked(of(10), evict_within(11), {units(1)})->placed());
}

}  // namespace
}  // namespace tidemark::testing
