// Copies made ahead of need, of storages that stay resident.
#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

bool copy_out(Scene& scene, const Handle& handle) {
  return scene.residency().transfers().copy_out(*handle, Reason::kEarlyStart);
}

TEST(CopyOut, LeavesItWhereItIsAndReleasingItIsFree) {
  Scene scene({.arena = 8, .host = 8});
  const Handle x = scene.data(2);
  const uint64_t hash = scene.hash(x);
  EXPECT_FALSE(scene.residency().view().has_copy(*x));
  ASSERT_TRUE(copy_out(scene, x));
  EXPECT_TRUE(resident(x) && scene.residency().view().has_copy(*x));
  EXPECT_EQ(scene.used(), units(2));
  EXPECT_EQ(scene.session().host()->used(), units(2));
  ASSERT_EQ(scene.events(EventKind::kCopyOut).size(), 1U);
  EXPECT_EQ(scene.events(EventKind::kCopyOut)[0].reason, Reason::kEarlyStart);
  EXPECT_EQ(scene.events(EventKind::kCopyOut)[0].bytes, units(2));

  ASSERT_TRUE(scene.residency().transfers().release(*x, Reason::kNoSpace));
  EXPECT_TRUE(offloaded(x));
  EXPECT_FALSE(scene.residency().view().has_copy(*x)) << "only of what is resident";
  EXPECT_EQ(scene.count(EventKind::kDropClean), 1);
  EXPECT_EQ(scene.count(EventKind::kOffload), 0);
  EXPECT_EQ(scene.stats().offloads, 1) << "one copy was made";
  EXPECT_EQ(scene.stats().clean_drops, 1);
  EXPECT_EQ(scene.hash(x), hash);
  EXPECT_EQ(scene.stats().reloads, 1);
}

TEST(CopyOut, OfWhatHasACopyOrIsAwayDoesNothing) {
  Scene scene({.arena = 8, .host = 8});
  const Handle x = scene.data();
  ASSERT_TRUE(copy_out(scene, x));
  EXPECT_FALSE(copy_out(scene, x));
  ASSERT_TRUE(scene.residency().transfers().release(*x, Reason::kNoSpace));
  EXPECT_FALSE(copy_out(scene, x));
  EXPECT_EQ(scene.stats().offloads, 1);
}

TEST(CopyOut, NeedsATierWithRoomAndAStorageThatMayGo) {
  Scene none({.arena = 8});
  EXPECT_FALSE(copy_out(none, none.data()));
  Scene scene({.arena = 8, .host = 1});
  const Handle large = scene.data(2), pinned = scene.data();
  pinned->offload_pinned = true;
  EXPECT_FALSE(copy_out(scene, large));
  EXPECT_FALSE(copy_out(scene, pinned));
  EXPECT_TRUE(resident(large) && resident(pinned));
  EXPECT_EQ(scene.session().host()->used(), Bytes(0));
  EXPECT_EQ(scene.stats().offloads, 0);
}

// On a full tier, copies of resident storages make way, as nothing is lost by that.
TEST(CopyOut, TakesTheRoomOfOtherCleanCopies) {
  Scene scene({.arena = 8, .host = 2});
  const Handle x = scene.data(2), y = scene.data(2);
  ASSERT_TRUE(copy_out(scene, x));
  ASSERT_TRUE(copy_out(scene, y));
  EXPECT_FALSE(scene.residency().view().has_copy(*x));
  EXPECT_TRUE(scene.residency().view().has_copy(*y));
  EXPECT_TRUE(resident(x));
}

// A storage that is written loses its copy; releasing it makes a new one.
TEST(CopyOut, IsUndoneByAWrite) {
  Scene scene({.arena = 8, .host = 8, .poison = false});
  for (int round = 0; round < 6; ++round) {
    scene.device().delay_copies(static_cast<uint64_t>(round), Nanos(300'000));
    const Handle x = scene.data(2), y = scene.data();
    ASSERT_TRUE(copy_out(scene, x));
    scene.update({x, y});
    EXPECT_FALSE(scene.residency().view().has_copy(*x));
    EXPECT_EQ(scene.session().host()->used(), Bytes(0));
    const uint64_t hash = scene.hash(x);
    ASSERT_TRUE(scene.residency().transfers().release(*x, Reason::kNoSpace));
    EXPECT_EQ(scene.hash(x), hash);
  }
  EXPECT_EQ(scene.count(EventKind::kOffload), 6);
}

// The space of a storage that is dropped while its copy is under way waits for the copy.
//   x x . .     y takes the place of x
TEST(CopyOut, TheSpaceWaitsForTheCopy) {
  Scene scene({.arena = 2, .host = 8, .poison = false});
  for (int round = 0; round < 6; ++round) {
    const Handle x = scene.call({}, 2);
    const uint64_t hash = scene.hash(x);
    scene.device().delay_copies(static_cast<uint64_t>(round), Nanos(300'000));
    ASSERT_TRUE(copy_out(scene, x));
    ASSERT_TRUE(scene.residency().transfers().release(*x, Reason::kNoSpace));
    Handle y = scene.call({}, 2);
    y = {};
    EXPECT_EQ(scene.hash(x), hash);
  }
}

TEST(CopyOut, GoesWithItsStorage) {
  Scene scene({.arena = 8, .host = 8});
  Handle x = scene.data(2);
  ASSERT_TRUE(copy_out(scene, x));
  x = {};
  EXPECT_EQ(scene.used(), Bytes(0));
  EXPECT_EQ(scene.session().host()->used(), Bytes(0));
}

}  // namespace
}  // namespace tidemark::testing
