// Evicted storages come back: chains, siblings, and inputs that are kept for that.
#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

//   x -> a -> b -> c     all but x evicted; c is asked for
TEST(Recompute, BringsBackAChain) {
  Scene scene;
  const Handle x = scene.data();
  const Handle a = scene.call({x}), b = scene.call({a}), c = scene.call({b});
  const uint64_t hash_a = scene.hash(a), hash_b = scene.hash(b), hash_c = scene.hash(c);
  for (const Handle& handle : {a, b, c}) EXPECT_TRUE(scene.evict(handle));
  EXPECT_EQ(scene.used(), units(1));

  EXPECT_EQ(scene.hash(c), hash_c);
  EXPECT_EQ(scene.stats().recomputes, 3);
  EXPECT_TRUE(resident(a) && resident(b) && resident(c)) << "all have users";
  EXPECT_EQ(scene.hash(a), hash_a);
  EXPECT_EQ(scene.hash(b), hash_b);
  EXPECT_EQ(scene.stats().recomputes, 3) << "nothing was run twice";
}

//   x -> a -> b     a schedule has b computed, and what it needs has gone for lack of space
TEST(Recompute, ForAScheduleWithoutPlacesInputsComeBack) {
  using How = BlockPlacement::How;
  Scene scene({.host = 64});
  const Handle x = scene.data();
  const Handle a = scene.call({x}), b = scene.call({a});
  const uint64_t hash = scene.hash(b);
  ASSERT_TRUE(scene.evict(b) && scene.evict(a) && scene.offload(x));
  const Offset place(0);
  EXPECT_FALSE(scene.residency().recompute(*b, {.how = How::kAt, .at = {&place, 1}}));
  EXPECT_EQ(scene.used(), units(0)) << "there is no place for a and x";
  EXPECT_TRUE(scene.residency().recompute(*b, {.how = How::kCompact}));
  EXPECT_TRUE(resident(b));
  EXPECT_EQ(scene.stats().recomputes, 2);
  EXPECT_EQ(scene.hash(b), hash);
}

//   x -> (a) -> (b) -> c     nobody uses a and b: they pass through
TEST(Recompute, DropsIntermediatesThatNobodyUses) {
  Scene scene;
  const Handle x = scene.data();
  Handle a = scene.call({x}), b = scene.call({a});
  const Handle c = scene.call({b});
  const uint64_t hash = scene.hash(c);
  a = {};
  b = {};
  EXPECT_EQ(scene.used(), units(2)) << "x, which c's recipe needs, and c";
  ASSERT_TRUE(scene.evict(c));
  EXPECT_EQ(scene.hash(c), hash);
  EXPECT_EQ(scene.stats().recomputes, 3);
  EXPECT_EQ(scene.used(), units(2));
}

//        a -> b
//   x <          > d     a diamond: x's reader is run once
//        a -> c
TEST(Recompute, RunsASharedAncestorOnce) {
  Scene scene;
  const Handle x = scene.data();
  Handle a = scene.call({x}), b = scene.call({a}), c = scene.call({a});
  const Handle d = scene.call({b, c});
  const uint64_t hash = scene.hash(d);
  a = b = c = {};
  ASSERT_TRUE(scene.evict(d));
  EXPECT_EQ(scene.hash(d), hash);
  EXPECT_EQ(scene.stats().recomputes, 4);
}

// The two outputs of one call, and their bytes.
struct Siblings {
  Siblings(Scene& scene, const std::vector<int64_t>& sizes)
      : x(scene.data()), pair(scene.calls({x}, sizes)) {
    for (const Handle& each : pair) hashes.push_back(scene.hash(each));
  }
  // `first` is asked for, which leaves the other in a state that `other_is` accepts, then the
  // other.
  template <class OtherIs>
  void expect_back(Scene& scene, size_t first, const OtherIs& other_is) const {
    const size_t other = 1 - first;
    EXPECT_EQ(scene.hash(pair[first]), hashes[first]);
    EXPECT_TRUE(other_is(pair[other]));
    EXPECT_EQ(scene.hash(pair[other]), hashes[other]);
  }
  const Handle x;
  std::vector<Handle> pair;
  std::vector<uint64_t> hashes;
};

TEST(Recompute, SiblingsComeBackTogether) {
  Scene scene;
  const Siblings both(scene, {1, 2});
  for (const Handle& each : both.pair) ASSERT_TRUE(scene.evict(each));
  both.expect_back(scene, 1, [](const Handle& other) { return resident(other); });
  EXPECT_EQ(scene.stats().recomputes, 1);
}

TEST(Recompute, ADeadSiblingIsWrittenToScratch) {
  Scene scene;
  const Handle x = scene.data();
  auto pair = scene.calls({x}, {1, 8});
  const uint64_t hash = scene.hash(pair[0]);
  pair.pop_back();
  EXPECT_EQ(scene.used(), units(2));
  ASSERT_TRUE(scene.evict(pair[0]));
  const Bytes peak_before = scene.session().arena().peak_reserved();
  EXPECT_EQ(scene.hash(pair[0]), hash);
  EXPECT_EQ(scene.used(), units(2)) << "the scratch is gone again";
  EXPECT_LE(scene.session().arena().peak_reserved(), peak_before);
}

// A sibling that was written in place must not get its old bytes back.
TEST(Recompute, LeavesAResidentSiblingAlone) {
  Scene scene;
  const Handle x = scene.data();
  const auto pair = scene.calls({x}, {1, 1});
  const uint64_t first = scene.hash(pair[0]);
  scene.update({pair[1], x});
  const uint64_t second = scene.hash(pair[1]);
  ASSERT_TRUE(scene.evict(pair[0]));
  EXPECT_EQ(scene.hash(pair[0]), first);
  EXPECT_EQ(scene.hash(pair[1]), second);
}

TEST(Recompute, LeavesAnOffloadedSiblingAlone) {
  Scene scene({.host = 8});
  const Siblings both(scene, {1, 1});
  ASSERT_TRUE(scene.evict(both.pair[0]) && scene.offload(both.pair[1]));
  both.expect_back(scene, 0, [](const Handle& other) { return offloaded(other); });
  EXPECT_EQ(scene.stats().reloads, 1);
}

TEST(Recompute, ReloadsAnInputThatIsOnATier) {
  Scene scene({.host = 8});
  const Handle x = scene.data();
  const Handle a = scene.call({x}), b = scene.call({a});
  const uint64_t hash = scene.hash(b);
  ASSERT_TRUE(scene.evict(b) && scene.offload(a));
  EXPECT_EQ(scene.hash(b), hash);
  EXPECT_EQ(scene.stats().recomputes, 1);
  EXPECT_EQ(scene.stats().reloads, 1);
}

TEST(Recompute, KeepsABatchThatRecipesMayWant) {
  Scene scene;
  Handle a;
  scene.session().step([&] {
    Handle x = scene.data(4);
    a = scene.call({x});
    x = {};
    EXPECT_EQ(scene.used(), units(5));
    const uint64_t hash = scene.hash(a);
    ASSERT_TRUE(scene.evict(a));
    EXPECT_EQ(scene.hash(a), hash);
  });
  EXPECT_EQ(scene.used(), units(1)) << "at the step's end recipes go, and the batch with them";
  EXPECT_FALSE(scene.evict(a)) << "what survives a step has no recipe";
}

TEST(Recompute, AKeptBatchMayBeOffloaded) {
  Scene scene({.arena = 6, .host = 8});
  Handle x = scene.data(4);
  const Handle a = scene.call({x});
  const uint64_t hash = scene.hash(a);
  x = {};
  const Handle big = scene.call({a}, 5);
  EXPECT_EQ(scene.session().host()->used(), units(4));
  ASSERT_TRUE(scene.evict(big) && scene.evict(a));
  EXPECT_EQ(scene.hash(a), hash);
}

TEST(Recompute, DropsABatchAtOnceWhereTheStepIsKnownToFit) {
  Scene scene({.known_to_fit = true});
  Handle x = scene.data(4);
  const Handle a = scene.call({x});
  x = {};
  EXPECT_EQ(scene.used(), units(1));
  EXPECT_FALSE(scene.evict(a)) << "its recipe cannot run any more";
  EXPECT_TRUE(resident(a));
}

// a is dead and can no longer be recomputed: its bytes are the only source of b's.
//   x -> a -> b    b evicted, x overwritten, a dropped
TEST(Recompute, KeepsTheOnlySourceOfAnEvictedStorage) {
  Scene scene;
  const Handle x = scene.data();
  Handle a = scene.call({x});
  const Handle b = scene.call({a});
  const uint64_t hash = scene.hash(b);
  ASSERT_TRUE(scene.evict(b));
  scene.update({x});
  a = {};
  EXPECT_EQ(scene.used(), units(2));
  EXPECT_EQ(scene.hash(b), hash);
}

// The same, but nothing is evicted when a goes: a is freed, and b can no longer be evicted.
TEST(Recompute, WhatHasLostItsSourceIsNotEvicted) {
  Scene scene;
  const Handle x = scene.data();
  Handle a = scene.call({x});
  const Handle b = scene.call({a});
  const uint64_t hash = scene.hash(b);
  ASSERT_TRUE(scene.evict(b));  // so that recipes were found to be runnable
  EXPECT_EQ(scene.hash(b), hash);
  scene.update({x});
  a = {};
  EXPECT_EQ(scene.used(), units(2));
  EXPECT_FALSE(scene.evict(b));
  EXPECT_EQ(scene.hash(b), hash);
}

// x1 .. x12 fit three at a time: an input of a recomputation is not evicted before it is read.
TEST(Recompute, DoesNotThrashWithinOneRecomputation) {
  Scene scene({.arena = 4});
  const Handle x = scene.data();
  std::vector<Handle> chain{x};
  for (int i = 0; i < 12; ++i) chain.push_back(scene.call({chain.back()}));
  const uint64_t hash = scene.hash(chain.back());
  for (size_t i = 1; i < chain.size(); ++i) {
    if (resident(chain[i])) {
      EXPECT_TRUE(scene.evict(chain[i]));
    }
  }
  const int64_t before = scene.stats().recomputes;
  EXPECT_EQ(scene.hash(chain.back()), hash);
  EXPECT_EQ(scene.stats().recomputes - before, 12);
}

//        a -> (b)
//   x <           > d     and e; arena: x e a b, then c: e goes, b waits for d and stays
//        a -> (c)
TEST(Recompute, TheAustereScheduleSparesWhatIsStillToBeRead) {
  Scene scene({.arena = 4, .policy = "austere"});
  const Handle x = scene.data();
  Handle a = scene.call({x}), b = scene.call({a}), c = scene.call({a});
  a = {};
  const Handle d = scene.call({b, c});
  const uint64_t hash = scene.hash(d);
  b = c = {};
  const Handle e = scene.call({x});
  ASSERT_TRUE(scene.evict(d));
  EXPECT_EQ(scene.hash(d), hash);
  EXPECT_TRUE(evicted(e));
  EXPECT_EQ(scene.stats().recomputes, 4);
}

//   x -> (u) -> (p)
//                   > (r)     arena: x k, with room for 2; u takes 3, so that k has to go for
//                   it
//   x ----------> k
TEST(Recompute, GivesUpClaimsThatDoNotFit) {
  Scene scene({.arena = 6});
  const Handle x = scene.data();
  Handle u = scene.call({x}, 3), p = scene.call({u});
  ASSERT_TRUE(scene.evict(u));
  u = {};
  const Handle k = scene.call({x}, 3);
  const Handle r = scene.call({p, k});
  const uint64_t hash = scene.hash(r), other = scene.hash(k);
  p = {};
  ASSERT_TRUE(scene.evict(r));
  ASSERT_TRUE(resident(k));
  EXPECT_EQ(scene.hash(r), hash);
  EXPECT_EQ(scene.hash(k), other);
  EXPECT_EQ(scene.stats().recomputes, 5) << "u, then once more for p, p, k and r";
}

// As long as programs get: neither the stack nor quadratic time may be a problem, also when
// everything is destroyed.
TEST(Recompute, DeepChain) {
  constexpr int kDepth = 20000;
  Scene scene({.arena = 8, .poison = false});
  const Handle x = scene.data();
  Handle last = x;
  for (int i = 0; i < kDepth; ++i) last = scene.call({last});
  EXPECT_EQ(scene.used(), units(2));
  const uint64_t hash = scene.hash(last);
  ASSERT_TRUE(scene.evict(last));
  EXPECT_EQ(scene.hash(last), hash);
  EXPECT_EQ(scene.stats().recomputes, kDepth) << "each once";
  ASSERT_TRUE(scene.evict(last));
  last = {};
  EXPECT_EQ(scene.used(), units(1));
}

TEST(Recompute, DeepChainOfUsedStorages) {
  constexpr int kDepth = 20000;
  Scene scene({.arena = kDepth + 8, .poison = false});
  std::vector<Handle> chain{scene.data()};
  for (int i = 0; i < kDepth; ++i) chain.push_back(scene.call({chain.back()}));
  const uint64_t hash = scene.hash(chain.back());
  for (size_t i = 1; i < chain.size(); ++i) ASSERT_TRUE(scene.evict(chain[i]));
  EXPECT_EQ(scene.hash(chain.back()), hash);
  EXPECT_EQ(scene.stats().recomputes, kDepth);
  for (size_t i = 1; i < chain.size(); i += 2) ASSERT_TRUE(scene.evict(chain[i]));
  for (size_t i = 1; i < chain.size(); i += 2) scene.hash(chain[i]);
  EXPECT_EQ(scene.stats().recomputes, kDepth + kDepth / 2);
}

TEST(Recompute, ADeepChainOutlivesItsSession) {
  Handle last;
  {
    Scene scene({.arena = 8, .poison = false});
    last = scene.data();
    for (int i = 0; i < 20000; ++i) last = scene.call({last});
    ASSERT_TRUE(scene.evict(last));
  }
  EXPECT_EQ(last->residence(), Residence::kLost);
}

TEST(Recompute, WhatSurvivesAStepHasItsBytesAndNoRecipe) {
  Scene scene;
  Handle x = scene.data(), a, b;
  uint64_t hash_a = 0, hash_b = 0;
  scene.session().step([&] {
    a = scene.call({x});
    b = scene.call({a});
    hash_a = scene.hash(a);
    hash_b = scene.hash(b);
    ASSERT_TRUE(scene.evict(b) && scene.evict(a));
  });
  EXPECT_EQ(scene.stats().recomputes, 2);
  EXPECT_TRUE(resident(a) && resident(b));
  for (const EventRecord& event : scene.events(EventKind::kRecompute)) {
    EXPECT_EQ(event.reason, Reason::kEndOfStep);
  }
  x = {};
  EXPECT_EQ(scene.used(), units(2)) << "no recipe keeps x";
  EXPECT_FALSE(scene.evict(a));
  EXPECT_EQ(scene.hash(a), hash_a);
  EXPECT_EQ(scene.hash(b), hash_b);
}

TEST(Recompute, TheTimeOfTheStepsEndIsTheStepsOwn) {
  Scene scene;
  const Handle x = scene.data();
  Handle a;
  const StepStats& stats = scene.session().step([&] {
    a = scene.call({x}, 16);
    ASSERT_TRUE(scene.evict(a));
  });
  EXPECT_EQ(stats.recomputes, 1);
  EXPECT_GT(stats.recompute_time, Nanos(0));
}

}  // namespace
}  // namespace tidemark::testing
