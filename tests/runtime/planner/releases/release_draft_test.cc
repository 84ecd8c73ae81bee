// Drafts for hand-written records, with pictures of live items (one column per call, a letter
// per item of one unit), and for random ones, checked from first principles.
#include "runtime/planner/releases/release_draft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "tests/support/sanitized.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

// "evict 2: 3-7" and "copy 0: 1-9, back at 6", one per line.
std::string describe(const ReleaseDraft& plan) {
  std::string text;
  for (const PlannedRelease& release : plan.releases) {
    const bool copy = release.action == Release::kOffload;
    text += std::string(copy ? "copy " : "evict ") + std::to_string(release.item) + ": " +
            std::to_string(release.from) + "-" + std::to_string(release.to) +
            (copy ? ", back at " + std::to_string(release.reload_at) : "") + "\n";
  }
  return text;
}

// --- the effects of a draft, computed without the planner's code ---

std::vector<bool> alive(const StepTable& step, const StepTable::Item& item) {
  std::vector<bool> calls(step.calls.size(), item.persistent);
  if (item.persistent) return calls;
  for (uint32_t k = item.existed_before() ? 0 : item.begin; k < item.end; ++k) calls[k] = true;
  return calls;
}

// Calls at which released items are away. Copies go out one after the other, in the order in
// which they may begin. `ties_first`: each of several that may begin together counts as the
// first.
std::vector<std::set<uint32_t>> away(const StepTable& step, const PlanLimits& limits,
                                     const ReleaseDraft& plan, bool ties_first) {
  const auto n = static_cast<uint32_t>(step.calls.size());
  std::vector<std::set<uint32_t>> result(plan.releases.size());
  struct Copy {
    size_t release;
    Nanos ready, out;
    Nanos time;
  };
  std::vector<Copy> copies;
  for (size_t r = 0; r < plan.releases.size(); ++r) {
    const PlannedRelease& release = plan.releases[r];
    if (release.action == Release::kEvict) {
      for (uint32_t k = release.from + 1; k < release.to; ++k) result[r].insert(k);
      continue;
    }
    const StepTable::Call& from = step.calls[release.from];
    const auto bytes = static_cast<double>(step.items[release.item].bytes.count());
    const bool over_the_end = release.to <= release.from;
    const bool comes_first = over_the_end && !step.items[release.item].at_end;
    const Nanos ready = from.begin + from.cost - (over_the_end ? step.duration : Nanos(0));
    copies.push_back(
        {r, comes_first ? Nanos(0) : ready, Nanos(0),
         limits.latency + Nanos(static_cast<int64_t>(bytes / limits.out_bandwidth * 1e9))});
  }
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.ready < b.ready; });
  Nanos free{std::numeric_limits<int64_t>::min() / 2};
  for (size_t i = 0; i < copies.size();) {
    size_t end = i;
    Nanos total{0};
    for (; end < copies.size() && copies[end].ready == copies[i].ready; ++end) {
      total += copies[end].time;
    }
    const Nanos start = std::max(free, copies[i].ready);
    for (size_t c = i; c < end; ++c) {
      copies[c].out = start + (ties_first ? copies[c].time : total);
    }
    free = start + total;
    i = end;
  }
  for (const Copy& copy : copies) {
    const PlannedRelease& release = plan.releases[copy.release];
    const bool over_the_end = release.to <= release.from;
    for (uint32_t k = 0; k < n; ++k) {
      const Nanos begin = step.calls[k].begin;
      if (over_the_end) {
        // Before the next use in this step, or after the last use, when the copy was made in
        // this step.
        const bool early = k < release.to && k <= release.reload_at && begin >= copy.out;
        const bool late = step.items[release.item].at_end && k > release.from &&
                          begin >= copy.out + step.duration;
        if (early || late) result[copy.release].insert(k);
      } else if (k > release.from && k < release.to && k <= release.reload_at &&
                 begin >= copy.out && alive(step, step.items[release.item])[k]) {
        result[copy.release].insert(k);
      }
    }
  }
  return result;
}

std::vector<int64_t> live_bytes(const StepTable& step, const ReleaseDraft& plan,
                                const std::vector<std::set<uint32_t>>& absent) {
  std::vector<int64_t> live(step.calls.size());
  for (uint32_t k = 0; k < live.size(); ++k) {
    live[k] = step.calls[k].workspace.count();
    const uint32_t overwritten = step.calls[k].overwrites;
    if (overwritten != StepTable::kNone) live[k] -= step.items[overwritten].bytes.count();
    for (const auto& item : step.items) {
      if (alive(step, item)[k]) live[k] += item.bytes.count();
    }
    for (size_t r = 0; r < absent.size(); ++r) {
      if (absent[r].count(k)) live[k] -= step.items[plan.releases[r].item].bytes.count();
    }
  }
  return live;
}

int64_t most(const std::vector<int64_t>& live) {
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

// Counts cases, so that a test can check that it covered some.
struct DraftsSeen {
  int evictions = 0, copies = 0, over_the_end = 0, to_the_end = 0, exact = 0, fitting = 0;
};

void check(const StepTable& step, const PlanLimits& limits, const ReleaseDraft& plan,
           DraftsSeen& seen) {
  SCOPED_TRACE(describe(plan));
  EXPECT_EQ(plan.unmanaged.count(), most(live_bytes(step, {}, {})));
  if (plan.unmanaged <= limits.space) {
    EXPECT_TRUE(plan.releases.empty()) << "what fits stays";
  }
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> gaps;
  int64_t copied = 0;
  uint32_t before = 0;
  for (const PlannedRelease& release : plan.releases) {
    EXPECT_LE(before, release.from) << "by `from`";
    before = release.from;
    EXPECT_TRUE(gaps.insert({release.item, release.from, release.to}).second)
        << "one gap, one release";
    const StepTable::Item& item = step.items[release.item];
    const auto use = std::find(item.uses.begin(), item.uses.end(), release.from);
    ASSERT_NE(use, item.uses.end()) << "a gap begins at a use";
    if (release.to <= release.from) {
      EXPECT_TRUE(item.lives_through() || item.existed_before());
      EXPECT_EQ(release.from, item.uses.back());
      EXPECT_EQ(release.to, item.uses.front());
      EXPECT_EQ(release.action, Release::kOffload) << "its recipe does not live that long";
      EXPECT_LT(release.reload_at, release.to);
      ++seen.over_the_end;
    } else if (release.to == step.calls.size()) {
      EXPECT_TRUE(item.carried());
      EXPECT_EQ(release.from, item.uses.back());
      EXPECT_EQ(release.action, Release::kOffload) << "it is not wanted any more";
      ++seen.to_the_end;
    } else {
      ASSERT_NE(use + 1, item.uses.end());
      EXPECT_EQ(release.to, *(use + 1)) << "and ends at the next one";
      EXPECT_GT(release.to, release.from + 1) << "with something in between";
    }
    if (release.action == Release::kOffload) {
      ++seen.copies;
      EXPECT_TRUE(item.may_offload);
      copied += item.bytes.count();
      if (release.to > release.from) {
        EXPECT_GE(release.reload_at, release.from);
        EXPECT_LT(release.reload_at, release.to + (release.to == step.calls.size()));
      }
    } else {
      ++seen.evictions;
      EXPECT_TRUE(item.may_evict);
      EXPECT_NE(item.producer, StepTable::kNone);
    }
  }
  EXPECT_LE(copied, limits.tier_space.count());
  const auto late = away(step, limits, plan, /*ties_first=*/false);
  const auto early = away(step, limits, plan, /*ties_first=*/true);
  const auto live = live_bytes(step, plan, late);
  EXPECT_LE(plan.peak.count(), most(live));
  EXPECT_GE(plan.peak.count(), most(live_bytes(step, plan, early)));
  seen.exact += late == early;
  seen.fitting += plan.peak <= limits.space && !plan.releases.empty();
  if (late != early) return;
  for (size_t r = 0; r < plan.releases.size(); ++r) {
    if (plan.releases[r].action != Release::kEvict) continue;
    const int64_t size = step.items[plan.releases[r].item].bytes.count();
    EXPECT_TRUE(std::any_of(late[r].begin(), late[r].end(),
                            [&](uint32_t k) { return live[k] + size > limits.space.count(); }))
        << "needless: " << plan.releases[r].item;
  }
}

ReleaseDraft checked(const TraceBuilder& record, const PlanLimits& limits) {
  DraftsSeen seen;
  ReleaseDraft plan = draft_releases(record.step(), limits);
  check(record.step(), limits, plan, seen);
  return plan;
}

// a b c are made in turn and used in the reverse order:
//   call  0 1 2 3 4 5
//         a a a a a a
//           b b b b .
//             c c . .
struct Tower {
  TraceBuilder record;
  uint32_t a, b, c;
  Tower(int64_t cost_a, int64_t cost_b, int64_t cost_c, int64_t cost = 10'000)
      : a(record.call({}, cost_a)), b(record.call({}, cost_b)), c(record.call({}, cost_c)) {
    record.run({c}, cost);
    record.run({b}, cost);
    record.run({a}, cost);
  }
};

TEST(ReleaseDraft, OfNothingIsNothing) {
  const ReleaseDraft plan = draft_releases({}, evict_within(1));
  EXPECT_TRUE(plan.releases.empty());
}

TEST(ReleaseDraft, WhatFitsStays) {
  const Tower tower(100, 100, 100);
  const ReleaseDraft plan = checked(tower.record, copy_within(3, 1));
  EXPECT_EQ(describe(plan), "");
  EXPECT_EQ(plan.unmanaged, units(3));
  EXPECT_EQ(plan.peak, units(3));
}

TEST(ReleaseDraft, EvictsTheCheapest) {
  const Tower dear_a(300, 100, 200), dear_b(100, 300, 200);
  EXPECT_EQ(describe(checked(dear_a.record, evict_within(2))), "evict 1: 1-4\n");
  const ReleaseDraft plan = checked(dear_b.record, evict_within(2));
  EXPECT_EQ(describe(plan), "evict 0: 0-5\n");
  EXPECT_EQ(plan.peak, units(2));
  EXPECT_EQ(plan.recomputation, Nanos(100));
}

// Per byte, a of 4 units at 300 is cheaper than b of 1 at 100, where 4 units are needed.
TEST(ReleaseDraft, CountsTimePerByteOfUse) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 300, 4);
  std::vector<uint32_t> small;
  for (int i = 0; i < 4; ++i) small.push_back(record.call({}, 100));
  record.idle(2, 10'000);
  for (const uint32_t b : small) record.run({b}, 10'000);
  record.run({a}, 10'000);
  EXPECT_EQ(describe(checked(record, evict_within(4))), "evict 0: 0-11\n");
  // One unit too much, until call 7: the rest of a would free more than is needed.
  EXPECT_EQ(describe(checked(record, evict_within(7))), "evict 2: 2-8\n");
}

// A workspace counts during its call.
TEST(ReleaseDraft, MakesRoomForWorkspaces) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100);
  record.run({}, 10'000, /*workspace=*/2);
  record.run({a}, 10'000);
  EXPECT_EQ(describe(checked(record, evict_within(2))), "evict 0: 0-2\n");
  EXPECT_EQ(describe(checked(record, evict_within(3))), "");
}

// c needs b and b needs a, which have ended by then: 100 + 100 + 100, more than d's 250.
TEST(ReleaseDraft, CountsDeadInputs) {
  for (const int64_t cost_d : {250, 350}) {
    TraceBuilder record;
    const uint32_t a = record.call({}, 100);
    const uint32_t b = record.call({a}, 100);
    const uint32_t c = record.call({b}, 100);
    const uint32_t d = record.call({}, cost_d);
    record.run({}, 10'000, /*workspace=*/1);
    record.run({c}, 10'000);
    record.run({d}, 10'000);
    const ReleaseDraft plan = checked(record, evict_within(2));
    EXPECT_EQ(plan.releases.front().item, cost_d == 250 ? d : c) << describe(plan);
    EXPECT_EQ(plan.recomputation, Nanos(cost_d == 250 ? 250 : 300));
  }
}

// Items from outside, and items written in place, cannot be recomputed.
TEST(ReleaseDraft, EvictsOnlyWhatCanBeComputed) {
  TraceBuilder record;
  const uint32_t x = record.outside();
  const uint32_t a = record.call({x}, 100);
  const uint32_t b = record.call({}, 100);
  const uint32_t c = record.call({b}, 100);
  record.item(b).may_evict = false;
  record.idle(1, 100'000);
  record.run({a, c}, 100'000);
  EXPECT_EQ(describe(checked(record, evict_within(1))), "")
      << "a needs x, and c needs b, of which neither is there then";
  record.run({x, b}, 100'000);
  EXPECT_EQ(describe(checked(record, evict_within(3))), "evict 1: 0-4\n") << "now they are";
}

// An item whose recomputation takes a good part of the step is not evicted by plan.
TEST(ReleaseDraft, LeavesWhatIsTooDear) {
  const Tower tower(5000, 5000, 5000, 1000);
  const ReleaseDraft plan = checked(tower.record, evict_within(2));
  EXPECT_EQ(describe(plan), "");
  EXPECT_EQ(plan.peak, units(3));
}

// a takes long to compute and is copied, as the link hides the copy: out in 2000 while the
// calls from 1 on run, back before call 5.
//   call   0   1    2    3    4    5
//   time   0  8k  8.1k 8.2k 18k  28k
TEST(ReleaseDraft, CopiesTheDearestWhereTheLinkHidesIt) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 8000);
  record.idle(1, 10'000);
  const uint32_t b = record.call({}, 100);
  record.idle(1, 10'000);
  record.run({b}, 10'000);
  record.run({a}, 10'000);
  // Both items are live at call 3.
  EXPECT_EQ(describe(checked(record, copy_within(1, 2000))), "copy 0: 0-5, back at 4\n");
  EXPECT_EQ(describe(checked(record, copy_within(1, 9'900))), "copy 0: 0-5, back at 4\n");
  // The copy would end after the call with the most live bytes.
  EXPECT_EQ(describe(checked(record, copy_within(1, 10'200))), "evict 1: 2-4\n");
  EXPECT_EQ(describe(checked(record, copy_within(1, 2000, /*tier=*/0))), "evict 1: 2-4\n");
  PlanLimits slow = copy_within(1, 2000);
  slow.latency = Nanos(9000);
  EXPECT_EQ(describe(checked(record, slow)), "evict 1: 2-4\n");
  record.item(a).may_offload = false;
  EXPECT_EQ(describe(checked(record, copy_within(1, 2000))), "evict 1: 2-4\n");
}

// Two copies take longer than one.
TEST(ReleaseDraft, TheLinkCarriesOneCopyAfterTheOther) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 3000);
  const uint32_t b = record.call({}, 2000);
  record.idle(1, 20'000);
  const uint32_t c = record.call({}, 10'000);
  record.run({c}, 100'000);
  record.run({b}, 100'000);
  record.run({a}, 100'000);
  // Both copies have to be out at call 3, 25'000 after the beginning.
  EXPECT_EQ(describe(checked(record, copy_within(1, 11'000))),
            "copy 0: 0-6, back at 5\ncopy 1: 1-5, back at 4\n");
  EXPECT_EQ(describe(checked(record, copy_within(1, 11'001))),
            "copy 0: 0-6, back at 5\nevict 1: 1-5\n");
}

TEST(ReleaseDraft, KeepsToTheTiersRoom) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 300), b = record.call({}, 200);
  record.idle(1, 1000);
  const uint32_t c = record.call({}, 10'000);
  for (const uint32_t item : {c, b, a}) record.run({item}, 100'000);
  const auto plan = [&](int64_t tier) {
    return describe(checked(record, copy_within(1, 1, tier)));
  };
  EXPECT_EQ(plan(2), "copy 0: 0-6, back at 5\ncopy 1: 1-5, back at 4\n");
  EXPECT_EQ(plan(1), "copy 0: 0-6, back at 5\nevict 1: 1-5\n");
  EXPECT_EQ(plan(0), "evict 0: 0-6\nevict 1: 1-5\n");
}

// Optimizer state s is unused from its update to the next one, over the step's end.
//   call   0 1 2 3 4
//          . . . s s     a lives at 0..2, b at 1..2
TEST(ReleaseDraft, CopiesOptimizerStateOverTheStepsEnd) {
  TraceBuilder record;
  const uint32_t s = record.outside(1, /*persistent=*/true);
  const uint32_t a = record.call({}, 10'000);
  const uint32_t b = record.call({a}, 10'000);
  record.run({a, b}, 10'000);
  record.run({s}, 10'000);
  record.idle(1, 10'000);
  const ReleaseDraft plan = checked(record, copy_within(2, 100));
  EXPECT_EQ(plan.unmanaged, units(3));
  EXPECT_EQ(describe(plan), "copy 0: 3-3, back at 2\n");
  EXPECT_EQ(plan.peak, units(2));
  // s cannot be evicted.
  EXPECT_EQ(describe(checked(record, evict_within(2))), "");
}

// While the copy of s leaves, s is still resident: in the step's last calls, or even in the
// next step's first.
TEST(ReleaseDraft, CountsACopyUntilItIsOut) {
  TraceBuilder record;
  const uint32_t s = record.outside(1, /*persistent=*/true);
  record.idle(1, 20'000);
  const uint32_t a = record.call({}, 1000, 2);
  record.run({a}, 10'000);
  record.run({s}, 10'000);
  const uint32_t b = record.call({}, 10'000, 1);
  record.run({b}, 10'000);
  // The copy is out by call 5, so s is still there at call 4.
  EXPECT_EQ(checked(record, copy_within(2, 100)).peak, units(2));
  // The copy is not out before call 1 of the next step.
  const ReleaseDraft plan = checked(record, copy_within(2, 39'000));
  EXPECT_EQ(describe(plan), "");
}

// First a is evicted, then b, which alone suffices: a stays.
TEST(ReleaseDraft, TakesBackWhatLaterChoicesMadeNeedless) {
  // One unit too much at call 3 (where a is cheap), three at call 5 (where b is needed).
  TraceBuilder record;
  const uint32_t a = record.call({}, 90);
  const uint32_t b = record.call({}, 1000, 3);
  record.run({}, 30'000, /*workspace=*/1);
  record.run({}, 30'000, /*workspace=*/3);
  record.run({b}, 30'000);
  record.run({a}, 30'000);
  const ReleaseDraft plan = checked(record, evict_within(4));
  EXPECT_EQ(describe(plan), "evict 1: 1-4\n");
  EXPECT_EQ(plan.peak, units(4));
}

// b is recomputed from a, which is copied out. a comes back for b, before its own next use, and
// stays.
TEST(ReleaseDraft, BringsBackWhatRecomputationReads) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 9000);
  const uint32_t b = record.call({a}, 100);
  record.item(b).may_offload = false;
  record.idle(1, 10'000);
  record.run({}, 10'000, /*workspace=*/2);
  record.idle(1, 10'000);
  record.run({b}, 10'000);
  record.idle(2, 10'000);
  record.run({a}, 100'000);
  const ReleaseDraft plan = checked(record, copy_within(2, 1000));
  EXPECT_EQ(describe(plan), "copy 0: 1-8, back at 4\nevict 1: 1-5\n");
}

// c comes from an earlier step and ends after call 4. m is made in call 2 and stays, and so
// does p, a parameter. c is kept until the end, for a recipe.
TEST(ReleaseDraft, FindsWhenWhatIsCarriedMayBeAway) {
  TraceBuilder record;
  const uint32_t c = record.outside(), p = record.outside(1, /*persistent=*/true);
  record.idle(2);
  const uint32_t m = record.call({p});
  record.run({m});
  record.run({c, m});
  record.idle(3);
  record.hold(c, 8);
  record.keep(m);
  std::string text;
  for (const Gap& gap : find_gaps(record.step(), Bytes(1))) {
    text += std::string(1, "cpm"[gap.item]) + " " + std::to_string(gap.from) + "-" +
            std::to_string(gap.to) + (gap.wraps() ? " wraps\n" : "\n");
  }
  EXPECT_EQ(text, "c 4-4 wraps\nc 4-8\np 2-2 wraps\nm 4-8\n");
  record.item(c).at_end = true;  // as if it lived through the step
  EXPECT_EQ(find_gaps(record.step(), Bytes(1)).front().item, p);
}

TEST(ReleaseDraft, OfRandomStepsIsWhatItSays) {
  DraftsSeen seen;
  for (uint32_t seed = 1; seed <= cases(2000u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const StepTable step(random_trace(random));
    const int64_t unmanaged = most(live_bytes(step, {}, {}));
    PlanLimits limits;
    limits.space = align_down(Bytes(unmanaged / 100 * (30 + random() % 80)));
    limits.tier_space = random() % 3 == 0 ? Bytes(0) : units(1 + random() % 40);
    const uint32_t nanos = random() % 2 == 0 ? 100 : 3000;
    limits.out_bandwidth = unit_in(1 + random() % nanos);
    limits.in_bandwidth = unit_in(1 + random() % nanos);
    limits.latency = Nanos(random() % 100);
    const ReleaseDraft plan = draft_releases(step, limits);
    check(step, limits, plan, seen);
    const ReleaseDraft again = draft_releases(step, limits);
    ASSERT_EQ(describe(again), describe(plan));
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(seen.evictions, cases(1000));
  EXPECT_GT(seen.copies, cases(300));
  EXPECT_GT(seen.over_the_end, cases(50));
  EXPECT_GT(seen.to_the_end, cases(20));
  EXPECT_GT(seen.exact, cases(1500));
  EXPECT_GT(seen.fitting, cases(300));
}

}  // namespace
}  // namespace tidemark::planner::testing
