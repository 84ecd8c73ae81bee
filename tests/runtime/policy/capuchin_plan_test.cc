// Capuchin's plans of literal steps. A copy takes one nanosecond per unit, each way.
#include "runtime/policy/capuchin_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/core/units.h"
#include "tests/runtime/policy/stage.h"

namespace tidemark::testing {
namespace {

// A step of calls that each make a storage, in units.
class CapuchinSteps {
 public:
  // Returns the number of the storage.
  uint32_t call(const std::vector<uint32_t>& inputs, int64_t units, int64_t cost) {
    const auto made = static_cast<uint32_t>(trace_.storages.size());
    trace_.storages.push_back({.origin = "call", .size = kUnit * units});
    StepTrace::Op op{.name = "call", .outputs = {made}, .cost = Nanos(cost)};
    for (const uint32_t input : inputs) op.inputs.push_back({.storage = input});
    trace_.ops.push_back(op);
    return made;
  }
  void drop(uint32_t storage) { trace_.ops.back().released.push_back(storage); }
  StepTrace::Storage& storage(uint32_t number) { return trace_.storages[number]; }

  CapuchinPlan whole_plan(int64_t capacity, bool may_swap = true) const {
    const auto time = [](Bytes bytes) { return Nanos(bytes.count() / kUnit.count()); };
    return capuchin_plan(StepTable(trace_), {.capacity = kUnit * capacity,
                                             .may_swap = may_swap,
                                             .copy_out = time,
                                             .copy_in = time});
  }
  // "swap 0 at 2-7" for a storage that goes after call 2 and is back before call 7.
  std::string plan(int64_t capacity, bool may_swap = true) const {
    const CapuchinPlan plan = whole_plan(capacity, may_swap);
    std::string text;
    for (const CapuchinPlan::Release& release : plan.releases) {
      if (!text.empty()) text += ", ";
      text += (release.swap ? "swap " : "recompute ") + std::to_string(release.item) + " at " +
              std::to_string(release.after) + "-" + std::to_string(release.before);
      if (release.swap) text += ", in at " + std::to_string(release.in_trigger.count());
    }
    return text + (plan.suffices ? "" : "; too little");
  }

 private:
  StepTrace trace_;
};

//   call   0    1    2   3         4     5   6
//          a    b    .   needs 4   pause b   a       a and b: 2 each
CapuchinSteps two_storages(int64_t pause, int64_t cost_of_a = 50, int64_t cost_of_b = 10) {
  CapuchinSteps steps;
  const uint32_t a = steps.call({}, 2, cost_of_a), b = steps.call({}, 2, cost_of_b);
  steps.drop(steps.call({}, 0, 10));
  steps.drop(steps.call({}, 4, 10));
  steps.drop(steps.call({}, 1, pause));
  steps.call({b}, 0, 10);
  steps.call({a}, 0, 10);
  return steps;
}

TEST(CapuchinPlan, KeepsAllThatFits) { EXPECT_EQ(two_storages(100).plan(8), ""); }

// a is free from 50 to 190, b from 60 to 180; copies of 2 each.
TEST(CapuchinPlan, SwapsWhatHasMostFreeTime) {
  EXPECT_EQ(two_storages(100).plan(6), "swap 0 at 0-6, in at 188");
}

// a is swapped first and comes back last; b's copies do not wait for it.
TEST(CapuchinPlan, SwapsUntilMemorySuffices) {
  EXPECT_EQ(two_storages(100).plan(4), "swap 0 at 0-6, in at 188, swap 1 at 1-5, in at 178");
}

TEST(CapuchinPlan, RecomputesByMspsWithoutATier) {
  EXPECT_EQ(two_storages(100).plan(6, false), "recompute 1 at 1-5");
  EXPECT_EQ(two_storages(100, 10, 50).plan(6, false), "recompute 0 at 0-6");
  EXPECT_EQ(two_storages(100).plan(4, false), "recompute 1 at 1-5, recompute 0 at 0-6");
}

// b's copies of 20 each do not fit between its accesses 10 + 0 apart, and compute would wait
// for 30; recomputing takes 5.
TEST(CapuchinPlan, ComparesBothWhereNoSwapIsHidden) {
  for (const int64_t cost : {5, 35}) {
    CapuchinSteps steps;
    const uint32_t b = steps.call({}, 20, cost);
    steps.drop(steps.call({}, 20, 10));
    steps.call({b}, 0, 10);
    EXPECT_EQ(steps.plan(20), cost == 5 ? "recompute 0 at 0-2" : "swap 0 at 0-2, in at 25");
  }
}

// A direction of the link carries one copy at a time: b's copy out begins at 21 when a's is
// done, and ends after 27, when memory is short.
TEST(CapuchinPlan, CopiesOneAtATime) {
  CapuchinSteps steps;
  const uint32_t a = steps.call({}, 20, 1), b = steps.call({}, 20, 1);
  steps.drop(steps.call({}, 0, 25));
  steps.drop(steps.call({}, 40, 10));
  steps.drop(steps.call({}, 0, 60));
  steps.call({b}, 0, 1);
  steps.call({a}, 0, 1);
  EXPECT_EQ(steps.plan(60), "swap 0 at 0-6, in at 78");
  EXPECT_EQ(steps.plan(40), "swap 0 at 0-6, in at 78, recompute 1 at 1-5");
}

// c is made of b, and b of a: with b away, c takes as long as both.
TEST(CapuchinPlan, CountsSourcesThatAreAway) {
  CapuchinSteps steps;
  const uint32_t a = steps.call({}, 1, 1000), b = steps.call({a}, 1, 10);
  const uint32_t c = steps.call({b}, 1, 15), d = steps.call({a}, 1, 20);
  steps.drop(steps.call({}, 4, 1));
  steps.call({d, c}, 0, 1);
  steps.call({b, a}, 0, 1);
  EXPECT_EQ(steps.plan(7, false), "recompute 1 at 2-6");
  EXPECT_EQ(steps.plan(6, false), "recompute 1 at 2-6, recompute 3 at 3-5")
      << "20 is less than 15 + 10";
}

// The end of a chain can only be made again from its beginning.
TEST(CapuchinPlan, FollowsLongChains) {
  CapuchinSteps steps;
  constexpr uint32_t kLength = 500'000;
  uint32_t end = steps.call({}, 1, 1);
  for (uint32_t i = 1; i < kLength; ++i) {
    const uint32_t before = end;
    end = steps.call({before}, 1, 1);
    steps.drop(before);
  }
  steps.drop(steps.call({}, 4, 1));
  steps.call({end}, 0, 1);
  EXPECT_EQ(steps.plan(4, false), "recompute 499999 at 499999-500001");
}

// The first half is read again in reverse order, and all of it has to go.
TEST(CapuchinPlan, CountsAndLimitsItsWork) {
  const auto examined = [](uint32_t count, bool may_swap) {
    CapuchinSteps steps;
    std::vector<uint32_t> made;
    for (uint32_t i = 0; i < count; ++i) made.push_back(steps.call({}, 1, 1));
    steps.drop(steps.call({}, 1, 1));
    for (uint32_t i = count; i-- > 0;) steps.call({made[i]}, 0, 1);
    return steps.whole_plan(1, may_swap).examined;
  };
  for (const bool may_swap : {false, true}) {
    EXPECT_GT(examined(20, may_swap), 20 * 20 / 2) << "each choice looks at all that is left";
    EXPECT_LT(examined(20, may_swap), 20 * 20 * 20);
    const int64_t many = examined(10'000, may_swap);
    EXPECT_GE(many, CapuchinPlan::kMaxExamined);
    EXPECT_LT(many, CapuchinPlan::kMaxExamined * 2);
  }
}

TEST(CapuchinPlan, SaysWhatItCannotRelease) {
  CapuchinSteps steps = two_storages(100);
  steps.storage(0).may_evict = steps.storage(0).may_offload = false;
  EXPECT_EQ(steps.plan(4), "swap 1 at 1-5, in at 178; too little");
}

}  // namespace
}  // namespace tidemark::testing
