// DELTA's decisions, on the stage with round prices.
#include "runtime/policy/delta_policy.h"

#include <gtest/gtest.h>

#include "runtime/core/errors.h"
#include "runtime/residency/residency.h"
#include "tests/runtime/policy/stage.h"

namespace tidemark::testing {
namespace {

constexpr Residence kEvicted = Residence::kEvicted;
constexpr Residence kOffloaded = Residence::kOffloaded;

DeltaOptions quiet(const std::string& filter = "base") {
  return {.filter = filter, .early_start = 0, .prefetch = 0};
}

// F = c_r / c_s: at 1 the policy evicts, above 1 it offloads.
TEST(Director, EvictsUpToFEqualsOne) {
  Stage stage(64, quiet());
  const Handle cheap = stage.call({}, 1, 512), dear = stage.call({}, 1, 513);
  ASSERT_TRUE(stage.release(cheap) && stage.release(dear));
  EXPECT_EQ(cheap->residence(), kEvicted);
  EXPECT_EQ(dear->residence(), kOffloaded);
}

TEST(Director, CountsWhatHasToBeComputedOrReloadedFirst) {
  Stage stage(64, quiet());
  const Handle a = stage.call({}, 1, 300);
  const Handle b = stage.call({a}, 1, 212), c = stage.call({a}, 1, 213);
  ASSERT_TRUE(stage.release(a));
  ASSERT_EQ(a->residence(), kEvicted);
  ASSERT_TRUE(stage.release(b) && stage.release(c));
  EXPECT_EQ(b->residence(), kEvicted) << "300 + 212 = 512";
  EXPECT_EQ(c->residence(), kOffloaded) << "300 + 213 > 512";

  // An offloaded input counts as its reload: 512 bytes at 2e9 / 0.35 per second take 90 ns.
  const Handle x = stage.data();
  const Handle d = stage.call({x}, 1, 422), e = stage.call({x}, 1, 423);
  ASSERT_TRUE(stage.release(x));
  ASSERT_TRUE(stage.release(d) && stage.release(e));
  EXPECT_EQ(d->residence(), kEvicted);
  EXPECT_EQ(e->residence(), kOffloaded);
}

// A gradient's sources are soon gone: it is offloaded, however cheap recomputing it looks.
TEST(Director, OffloadsGradients) {
  Stage stage(64, quiet());
  const Handle gradient = stage.call({}, 1, 1, Category::kGradient);
  ASSERT_TRUE(stage.release(gradient));
  EXPECT_EQ(gradient->residence(), kOffloaded);
}

TEST(Director, PinsComeFirst) {
  Stage stage(64, quiet());
  const Handle cheap = stage.call({}, 1, 1), dear = stage.call({}, 1, 100'000);
  cheap->evict_pinned = true;
  dear->offload_pinned = true;
  ASSERT_TRUE(stage.release(cheap) && stage.release(dear));
  EXPECT_EQ(cheap->residence(), kOffloaded);
  EXPECT_EQ(dear->residence(), kEvicted);
  const Handle both = stage.call({}, 1, 1);
  both->evict_pinned = both->offload_pinned = true;
  EXPECT_FALSE(stage.release(both));
}

TEST(Filter, OrdersReleases) {
  const auto order = [](const std::string& filter) {
    Stage stage(12, quiet(filter));
    return release_order(stage);
  };
  EXPECT_EQ(order("base"), "cab");
  EXPECT_EQ(order("lru"), "bca");
  EXPECT_EQ(order("greedy"), "acb");
}

// Early start at one half of 8 units: use stays at 4, the stalest goes first, and what the last
// call touched stays, whatever its size.
TEST(EarlyStart, KeepsToItsShare) {
  Stage stage(8, {.filter = "lru", .early_start = 0.5, .prefetch = 0});
  std::vector<Handle> handles;
  for (int i = 0; i < 6; ++i) {
    handles.push_back(stage.call({}));
    EXPECT_LE(stage.used(), kUnit * 4);
  }
  EXPECT_EQ(stage.released(handles), "ab");
  const Handle big = stage.call({}, 4), bigger = stage.call({}, 4);
  EXPECT_TRUE(bigger->resident());
  EXPECT_FALSE(big->resident());
  const Handle huge = stage.call({}, 6);
  EXPECT_TRUE(huge->resident()) << "more than the share by itself";
  EXPECT_EQ(stage.stats().last_resorts, 0);
}

TEST(EarlyStart, CanBeSwitchedOffAndIsOffWhereEverythingFits) {
  for (const bool fits : {false, true}) {
    Stage stage(8, {.early_start = fits ? 0.5 : 0, .prefetch = 0}, 64, {.known_to_fit = fits});
    std::vector<Handle> handles;
    for (int i = 0; i < 8; ++i) handles.push_back(stage.call({}));
    EXPECT_EQ(stage.stats().evictions + stage.stats().offloads, 0);
  }
}

// Without a tier a batch has to stay; it must not stand in the way of storages that can go.
TEST(EarlyStart, PassesOverWhatCanNeverBeReleased) {
  Stage stage(8, {.filter = "lru", .early_start = 0.5, .prefetch = 0}, /*host=*/0);
  const Handle batch = stage.data();
  std::vector<Handle> handles;
  for (int i = 0; i < 5; ++i) handles.push_back(stage.call({}));
  EXPECT_EQ(stage.released(handles), "ab");
  EXPECT_LE(stage.used(), kUnit * 4);
}

// The paper's Assumption 2: after the loss nothing is released, except as the last resort.
TEST(Assumption2, HoldsInBackwardAndUpdate) {
  Stage stage(4, {.early_start = 0.5, .prefetch = 0, .repairs = "no-backward"});
  std::vector<Handle> handles;
  for (int i = 0; i < 2; ++i) handles.push_back(stage.call({}));
  stage.residency().set_phase(Phase::kBackward);
  for (int i = 0; i < 2; ++i) handles.push_back(stage.call({}));
  EXPECT_EQ(stage.released(handles), "");
  handles.push_back(stage.call({}));
  EXPECT_EQ(stage.stats().last_resorts, 1);
  EXPECT_NE(stage.released(handles), "");
  stage.residency().set_phase(Phase::kUpdate);
  handles.push_back(stage.call({}));
  EXPECT_GT(stage.used(), kUnit * 2);
  stage.residency().set_phase(Phase::kForward);
  handles.push_back(stage.call({}));
  EXPECT_LE(stage.used(), kUnit * 2) << "early start again";
}

Handle released(Stage& stage) {
  const Handle handle = stage.call({}, 1, 1000);
  EXPECT_TRUE(stage.release(handle));
  return handle;
}

// Storages that forward offloads are needed again in the reverse order.
TEST(Prefetcher, BringsBackTheLatestFirstAndNoMoreThanItsLimit) {
  Stage stage(64, {.early_start = 0, .prefetch = 2});
  std::vector<Handle> handles;
  for (int i = 0; i < 4; ++i) {
    handles.push_back(released(stage));
    stage.call({});
  }
  EXPECT_EQ(stage.prefetched(handles), "") << "not in forward";
  stage.residency().set_phase(Phase::kBackward);
  stage.call({});
  EXPECT_EQ(stage.prefetched(handles), "dc");
  stage.call({});
  EXPECT_EQ(stage.prefetched(handles), "dc") << "two are under way";
  stage.call({handles[3]});
  EXPECT_EQ(stage.prefetched(handles), "dcb") << "one has been used";
  stage.call({handles[2], handles[1]});
  EXPECT_EQ(stage.prefetched(handles), "dcba");
  EXPECT_EQ(stage.residency().view().prefetched(), 1);
  ASSERT_TRUE(stage.release(handles[0]));
  EXPECT_EQ(stage.residency().view().prefetched(), 0) << "given up unused";
}

// Storages that backward offloads are needed last.
TEST(Prefetcher, QueuesWhatBackwardOffloadsBehind) {
  Stage stage(64, {.early_start = 0, .prefetch = 1});
  std::vector<Handle> handles;
  for (int i = 0; i < 3; ++i) handles.push_back(stage.call({}, 1, 1000));
  ASSERT_TRUE(stage.release(handles[0]));
  stage.residency().set_phase(Phase::kBackward);
  stage.call({});  // takes a
  ASSERT_TRUE(stage.release(handles[1]) && stage.release(handles[2]));
  stage.call({handles[0]});
  EXPECT_EQ(stage.prefetched(handles), "ab");
  stage.call({handles[1]});
  EXPECT_EQ(stage.prefetched(handles), "abc");
}

// Algorithm 4, repaired: prefetching also stops when memory runs out, and does not start what
// early start would undo.
TEST(Prefetcher, StopsAtItsShareOfMemory) {
  Stage stage(8, {.early_start = 0.5, .prefetch = 8});
  std::vector<Handle> handles;
  for (int i = 0; i < 3; ++i) handles.push_back(released(stage));
  const Handle a = stage.call({}), b = stage.call({});
  stage.residency().set_phase(Phase::kBackward);
  const Handle c = stage.call({});
  EXPECT_EQ(stage.prefetched(handles), "c");
  EXPECT_EQ(stage.used(), kUnit * 4);
}

TEST(Prefetcher, ForgetsWhatIsGone) {
  Stage stage(64, {.early_start = 0, .prefetch = 4});
  Handle gone = stage.call({}, 1, 1000), kept = stage.call({}, 1, 1000);
  ASSERT_TRUE(stage.release(gone) && stage.release(kept));
  gone = {};
  stage.residency().set_phase(Phase::kBackward);
  stage.call({});
  EXPECT_EQ(stage.stats().prefetches, 1);
  EXPECT_TRUE(kept->resident());
}

// An offloaded storage that is needed is reloaded or recomputed, whichever is cheaper; in the
// paper, recomputed if possible.
TEST(RecomputeOrReload, TakesTheCheaperUnlessToldOtherwise) {
  for (const bool always : {false, true}) {
    DeltaOptions options = quiet();
    if (always) options.repairs = "no-reload";
    Stage stage(64, options);
    // A reload of 4 units takes 358 ns.
    const Handle dear = stage.call({}, 4, 359), cheap = stage.call({}, 4, 357);
    for (const Handle& handle : {dear, cheap}) {
      handle->evict_pinned = true;
      ASSERT_TRUE(stage.release(handle));
      ASSERT_EQ(handle->residence(), kOffloaded);
      handle->evict_pinned = false;
    }
    stage.call({dear});
    EXPECT_EQ(stage.stats().reloads, always ? 0 : 1);
    stage.call({cheap});
    EXPECT_EQ(stage.stats().recomputes, always ? 2 : 1);
  }
}

TEST(RecomputeOrReload, ReloadsWhatCannotBeComputed) {
  DeltaOptions options = quiet();
  options.repairs = "no-reload";
  Stage stage(64, options);
  const Handle x = stage.data();
  ASSERT_TRUE(stage.release(x));
  stage.call({x});
  EXPECT_EQ(stage.stats().reloads, 1);
  EXPECT_EQ(stage.stats().recomputes, 0);
}

TEST(DeltaOptions, AreChecked) {
  EXPECT_THROW(DeltaPolicy({.filter = "oldest"}, false), UsageError);
  EXPECT_THROW(DeltaPolicy({.early_start = 1.5}, false), UsageError);
  EXPECT_THROW(DeltaPolicy({.early_start = -0.1}, false), UsageError);
  EXPECT_THROW(DeltaPolicy({.prefetch = -1}, false), UsageError);
  EXPECT_NO_THROW(DeltaPolicy({.filter = "greedy", .early_start = 1, .prefetch = 0}, false));
}

}  // namespace
}  // namespace tidemark::testing
