// Capuchin's plans of literal steps. A copy takes one nanosecond per unit, each way.
#include "runtime/policy/capuchin_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/core/units.h"

namespace tidemark::testing {
namespace {

constexpr Bytes kUnit = kAlignment;

// A step of calls that each make a storage, in units.
class Steps {
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

  // "swap 0 at 2-7" for a storage that goes after call 2 and is back before call 7.
  std::string plan(int64_t capacity, bool may_swap = true) const {
    const auto time = [](Bytes bytes) { return Nanos(bytes.count() / kUnit.count()); };
    const CapuchinPlan plan = capuchin_plan(StepTable(trace_), {.capacity = kUnit * capacity,
                                                                .may_swap = may_swap,
                                                                .copy_out = time,
                                                                .copy_in = time});
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
Steps two_storages(int64_t pause, int64_t cost_of_a = 50, int64_t cost_of_b = 10) {
  Steps steps;
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
    Steps steps;
    const uint32_t b = steps.call({}, 20, cost);
    steps.drop(steps.call({}, 20, 10));
    steps.call({b}, 0, 10);
    EXPECT_EQ(steps.plan(20), cost == 5 ? "recompute 0 at 0-2" : "swap 0 at 0-2, in at 25");
  }
}

// A direction of the link carries one copy at a time: b's copy out begins at 21 when a's is
// done, and ends after 27, when memory is short.
TEST(CapuchinPlan, CopiesOneAtATime) {
  Steps steps;
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
  Steps steps;
  const uint32_t a = steps.call({}, 1, 1000), b = steps.call({a}, 1, 10);
  const uint32_t c = steps.call({b}, 1, 15), d = steps.call({a}, 1, 20);
  steps.drop(steps.call({}, 4, 1));
  steps.call({d, c}, 0, 1);
  steps.call({b, a}, 0, 1);
  EXPECT_EQ(steps.plan(7, false), "recompute 1 at 2-6");
  EXPECT_EQ(steps.plan(6, false), "recompute 1 at 2-6, recompute 3 at 3-5")
      << "20 is less than 15 + 10";
}

TEST(CapuchinPlan, SaysWhatItCannotRelease) {
  Steps steps = two_storages(100);
  steps.storage(0).may_evict = steps.storage(0).may_offload = false;
  EXPECT_EQ(steps.plan(4), "swap 1 at 1-5, in at 178; too little");
}

}  // namespace
}  // namespace tidemark::testing
