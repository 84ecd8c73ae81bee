// Counts kept as storages change state, and the map of what lies where.
#include "runtime/residency/state_changes.h"

#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

SceneOptions with_host() { return {.arena = 64, .host = 64}; }

TEST(StateChanges, CountWhatIsEvictedAndUsed) {
  Scene scene;
  const StateChanges& changes = scene.residency().changes();
  const Handle x = scene.data();
  Handle a = scene.call({x}), b = scene.call({a});
  EXPECT_EQ(changes.counts().evicted_needed, 0);
  ASSERT_TRUE(scene.evict(b));
  ASSERT_TRUE(scene.evict(a));
  EXPECT_EQ(changes.counts().evicted_needed, 2);
  a = {};
  EXPECT_EQ(changes.counts().evicted_needed, 1) << "nobody waits for it any more";
  scene.hash(b);
  EXPECT_EQ(changes.counts().evicted_needed, 0);
}

TEST(StateChanges, CountWhatIsClean) {
  Scene scene(with_host());
  Residency& residency = scene.residency();
  const StateChanges& changes = residency.changes();
  const Handle x = scene.data();
  EXPECT_EQ(changes.counts().clean, 0);
  ASSERT_TRUE(residency.transfers().copy_out(*x, Reason::kEarlyStart));
  EXPECT_EQ(changes.counts().clean, 1);
  ASSERT_TRUE(scene.offload(x));
  EXPECT_EQ(changes.counts().clean, 0) << "it is not in the arena";
  ASSERT_TRUE(residency.transfers().prefetch(*x));
  EXPECT_EQ(changes.counts().clean, 1);
  EXPECT_EQ(changes.counts().prefetched, 1);
  scene.update({x});
  EXPECT_EQ(changes.counts().clean, 0) << "what was written is not on the tier";
  EXPECT_EQ(changes.counts().prefetched, 0) << "it has been used";
}

// A schedule may evict a storage that has a copy: the copy's space is freed once nobody needs
// the storage.
TEST(StateChanges, GiveBackTheCopyOfWhatIsEvicted) {
  Scene scene(with_host());
  Transfers& transfers = scene.residency().transfers();
  const Handle x = scene.data();
  Handle a = scene.call({x});
  ASSERT_TRUE(transfers.copy_out(*a, Reason::kPlan));
  ASSERT_TRUE(transfers.release_by(*a, Action::kEvict, Reason::kPlan));
  EXPECT_TRUE(evicted(a));
  a = {};
  EXPECT_EQ(scene.residency().kept().storages, 1) << "x alone";
  const Handle large = scene.data(63);
  EXPECT_TRUE(scene.offload(large)) << "the tier is empty again";
}

// Blocks are listed by address, whatever the order in which they came.
TEST(StateChanges, KnowWhatLiesWhere) {
  Scene scene;
  const auto found = [&] { return scene.residency().changes().by_address(); };
  Handle a = scene.data(1), b = scene.data(2), c = scene.data(1);
  EXPECT_EQ(found(), (std::vector<Storage*>{a.get(), b.get(), c.get()}));
  a = {};
  const Handle d = scene.data(1);  // where a was
  EXPECT_EQ(found(), (std::vector<Storage*>{d.get(), b.get(), c.get()}));
  EXPECT_EQ(offset_of(*d), Offset(0));
}

// Destroying a chain of recipes this long by recursion would need as many stack frames.
TEST(StateChanges, BuryAWholeGraphWithoutRecursion) {
  Scene scene({.arena = 8});
  Handle last = scene.data();
  for (int i = 0; i < 50'000; ++i) last = scene.call({last});
  last = {};
  EXPECT_EQ(scene.residency().kept().storages, 0);
  EXPECT_EQ(scene.used(), units(0));
}

}  // namespace
}  // namespace tidemark::testing
