// Compaction: which blocks move, and that no work that reads or writes them is overtaken.
// Pictures show one letter per unit; see Scene::picture().
#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>

#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

// Fills the arena with blocks of `sizes` and drops those that `gaps` names.
std::vector<Handle> lay_out(Scene& scene, const std::vector<int64_t>& sizes,
                            const std::vector<size_t>& gaps) {
  std::vector<Handle> blocks;
  for (const int64_t size : sizes) blocks.push_back(scene.data(size));
  for (const size_t gap : gaps) blocks[gap] = {};
  return blocks;
}

//   a b . c d . e       2 units are needed: c and d slide down by one, nothing else moves
//   a b c d ? ? e
TEST(Sliding, MovesTheCheapestRun) {
  Scene scene({.arena = 7, .host = 16, .evict = false});
  const auto blocks = lay_out(scene, {1, 1, 1, 1, 1, 1, 1}, {2, 5});
  ASSERT_EQ(scene.picture(), "ab.cd.e");
  std::vector<uint64_t> hashes;
  for (const Handle& block : blocks) hashes.push_back(block ? scene.hash(block) : 0);
  const Handle x = scene.data(2);
  EXPECT_EQ(scene.picture(), "abcdeef");
  EXPECT_EQ(scene.count(EventKind::kCompact), 2);
  EXPECT_EQ(scene.stats().compactions, 1);
  EXPECT_EQ(scene.stats().offloads, 0);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i]) {
      EXPECT_EQ(scene.hash(blocks[i]), hashes[i]) << "block " << i;
    }
  }
}

//   aaa . b . c . d     b is the smallest run between two holes; aaa stays
TEST(Sliding, PrefersTheSmallerOfTwoRuns) {
  Scene scene({.arena = 9, .host = 16, .evict = false});
  const auto blocks = lay_out(scene, {1, 3, 1, 1, 1, 1, 1}, {0, 2, 4});
  ASSERT_EQ(scene.picture(), ".aaa.b.cd");
  const Handle x = scene.data(2);
  EXPECT_EQ(scene.picture(), ".aaabccde");
  EXPECT_EQ(scene.count(EventKind::kCompact), 1);
}

// With compaction off, something is released instead.
TEST(Sliding, CanBeSwitchedOff) {
  Scene scene({.arena = 7, .host = 16, .evict = false, .compact = false});
  const auto blocks = lay_out(scene, {1, 1, 1, 1, 1, 1, 1}, {2, 5});
  const Handle x = scene.data(2);
  EXPECT_EQ(scene.count(EventKind::kCompact), 0);
  EXPECT_GT(scene.stats().offloads, 0);
}

// Operands of the call that needs the space also slide, if nothing else helps.
//    w . x . y     w, x and y are read, 2 units are written
//    w x ? ? y
TEST(Sliding, MovesPinnedBlocksAsTheLastResort) {
  Scene scene({.arena = 5, .compact = false});
  const auto blocks = lay_out(scene, {1, 1, 1, 1, 1}, {1, 3});
  const uint64_t before = scene.hash(blocks[4]);
  const Handle out = scene.call({blocks[0], blocks[2], blocks[4]}, 2);
  EXPECT_EQ(scene.picture(), "abccd");
  EXPECT_EQ(scene.hash(blocks[4]), before);
  Scene ample;
  const auto same = lay_out(ample, {1, 1, 1, 1, 1}, {1, 3});
  EXPECT_EQ(scene.hash(out), ample.hash(ample.call({same[0], same[2], same[4]}, 2)));
}

// Uploads a block to that place.
Handle upload_at(Scene& scene, int64_t units_of_size, Offset at) {
  const auto count = static_cast<size_t>(units(units_of_size).count());
  const std::shared_ptr<std::byte[]> values(new std::byte[count]);
  std::fill_n(values.get(), count, std::byte{7});
  Handle handle(
      scene.residency().storages().create(units(units_of_size), Category::kData, "upload"));
  EXPECT_TRUE(scene.residency().upload(*handle, values.get(), values,
                                       {BlockPlacement::How::kAt, {&at, 1}}));
  return handle;
}

// A storage that no schedule foresaw finds no space beside the schedule's range. The range is
// given up, and its blocks slide like the others.
//   . b c [ . . p ] . .     3 units are needed
//   . b c p x x x .
TEST(Sliding, ClosesThePlanThatIsInItsWay) {
  Scene scene({.arena = 8, .host = 16, .evict = false});
  std::vector<Handle> blocks = lay_out(scene, {1, 1, 1}, {});
  ASSERT_TRUE(scene.residency().space().open_plan(Offset(0) + units(3), units(3)));
  blocks.push_back(upload_at(scene, 1, Offset(0) + units(5)));
  std::vector<uint64_t> hashes;
  for (const Handle& block : blocks) hashes.push_back(scene.hash(block));
  blocks[0] = {};
  ASSERT_EQ(scene.picture(), ".abccc..");
  // If there is space beside the plan, it stays open.
  EXPECT_TRUE(resident(scene.data(2)));
  EXPECT_TRUE(scene.residency().space().plan_is_open());
  const Handle x = scene.data(3);
  EXPECT_FALSE(scene.residency().space().plan_is_open());
  EXPECT_TRUE(resident(x));
  EXPECT_EQ(scene.picture(), ".abcddd.");
  for (size_t i = 1; i < blocks.size(); ++i) EXPECT_EQ(scene.hash(blocks[i]), hashes[i]) << i;
}

// Blocks of an open plan never move.
TEST(Sliding, LeavesAnOpenPlanAlone) {
  Scene scene({.arena = 8, .host = 16, .evict = false});
  const std::vector<Handle> blocks = lay_out(scene, {1, 1, 1, 1}, {1});
  EXPECT_EQ(scene.residency().pack(), Offset(0) + units(3));
  ASSERT_TRUE(scene.residency().space().open_plan(Offset(0) + units(3), units(3)));
  const Handle placed = upload_at(scene, 1, Offset(0) + units(5));
  const uint64_t hash = scene.hash(placed);
  EXPECT_FALSE(scene.residency().space().move(*placed, Offset(0) + units(6)));
  scene.residency().space().close_plan();
  EXPECT_TRUE(scene.residency().space().move(*placed, Offset(0) + units(6)));
  EXPECT_EQ(scene.hash(placed), hash);
}

// The policy does not learn of storages in an open plan until it is closed; then it may release
// them.
TEST(Sliding, OffersThePolicyWhatAClosedPlanHeld) {
  Scene scene({.arena = 4, .host = 16, .evict = false});
  ASSERT_TRUE(scene.residency().space().open_plan(Offset(0), units(4)));
  const Handle placed = upload_at(scene, 3, Offset(0));
  const uint64_t hash = scene.hash(placed);
  const Handle x = scene.data(2);
  EXPECT_FALSE(resident(placed));
  EXPECT_EQ(scene.stats().offloads, 1);
  EXPECT_EQ(scene.stats().last_resorts, 0) << "not by the policy";
  EXPECT_EQ(scene.hash(placed), hash);
}

// A block moves into space that a slow copy still reads, and waits for the copy.
//   x y .    x is being copied out; y moves over its place
//   y ? ?
TEST(Sliding, WaitsForCopiesThatStillReadTheSpace) {
  Scene scene({.arena = 9, .host = 16, .evict = false, .poison = false});
  scene.device().delay_copies(5, Nanos(500'000));
  for (int round = 0; round < 6; ++round) {
    Handle x = scene.data(3), y = scene.data(2);
    const uint64_t hash_x = scene.hash(x), hash_y = scene.hash(y);
    const Handle rest = scene.data(1);
    ASSERT_TRUE(scene.offload(x));
    ASSERT_EQ(scene.picture(), "...aab...");
    Handle z = scene.data(6);
    EXPECT_EQ(scene.picture(), "aabcccccc");
    EXPECT_EQ(scene.hash(y), hash_y);
    z = {};
    EXPECT_EQ(scene.hash(x), hash_x);
  }
  EXPECT_EQ(scene.stats().offloads, 6);
}

// A block that is being copied out moves, apart from its place or onto a part of it. The copy
// gets the old bytes, and the next user of the old place, compute or an upload, waits for the
// copy.
//   x x x . . .  ->  w w w x x x          . x x x  ->  x x x .
TEST(Sliding, WhatIsBeingCopiedOutMoves) {
  for (const bool down : {false, true}) {
    for (const bool by_upload : {false, true}) {
      Scene scene({.arena = 9, .host = 16, .evict = false, .poison = false});
      scene.device().delay_copies(7, Nanos(500'000));
      for (int round = 0; round < 6; ++round) {
        Handle gap = scene.data(down ? 1 : 3), x = scene.data(3);
        gap = {};
        if (!down) {
          ASSERT_TRUE(scene.residency().space().move(*x, Offset(0)));
        }
        const uint64_t hash = scene.hash(x);
        ASSERT_TRUE(scene.residency().transfers().copy_out(*x, Reason::kPlan));
        const Offset to = Offset(0) + kAlignment * (down ? 0 : 3);
        ASSERT_TRUE(scene.residency().space().move(*x, to));
        const Handle y = by_upload ? scene.data(down ? 1 : 3) : scene.call({x}, down ? 1 : 3);
        ASSERT_EQ(scene.picture(), down ? "aaab....." : "aaabbb...");
        // The present contents are overwritten; the old ones come back from the copy.
        ASSERT_TRUE(scene.offload(x));
        const Handle z = scene.data(down ? 6 : 5);
        EXPECT_EQ(scene.hash(x), hash);
      }
    }
  }
}

// A block that is still coming in moves, and is intact afterwards.
TEST(Sliding, WhatIsBeingCopiedInMoves) {
  Scene scene({.arena = 9, .host = 16, .evict = false, .poison = false});
  scene.device().delay_copies(3, Nanos(500'000));
  for (int round = 0; round < 6; ++round) {
    const Handle x = scene.data(3);
    const uint64_t hash = scene.hash(x);
    ASSERT_TRUE(scene.offload(x));
    ASSERT_TRUE(scene.residency().space().copy_in(*x, Offset(0) + kAlignment * 2));
    ASSERT_TRUE(scene.residency().space().move(*x, Offset(0) + kAlignment * (round % 2)));
    const Handle y = scene.call({x}, 3);
    EXPECT_EQ(scene.hash(x), hash);
  }
}

// Another stream at once writes the space that a slow move leaves.
//   . y .    y moves down; an upload takes the place that it is read from
TEST(Sliding, TheVacatedSpaceWaitsForTheMove) {
  Scene scene({.arena = 6, .host = 16, .evict = false, .poison = false});
  for (int round = 0; round < 8; ++round) {
    Handle gap = scene.data(2), y = scene.data(2);
    const uint64_t hash = scene.hash(y);
    gap = {};
    ASSERT_EQ(scene.picture(), "..aa..");
    scene.device().delay_copies(static_cast<uint64_t>(round), Nanos(500'000));
    const Handle x = scene.data(4);
    EXPECT_EQ(scene.picture(), "aabbbb");
    EXPECT_EQ(scene.hash(y), hash);
  }
}

// A block is dropped while it still moves: the next user of its new place waits for the move.
TEST(Sliding, TheNewPlaceWaitsForTheMoveToo) {
  const auto upload = [](Scene& scene) {
    return toy_upload(scene.session(), 2 * kUnitWords, 77);
  };
  Scene ample;
  const uint64_t expected = ample.hash(upload(ample));
  for (uint64_t round = 0; round < 8; ++round) {
    Scene scene({.arena = 6, .host = 16, .evict = false, .poison = false});
    Handle gap = scene.data(2), y = scene.data(2);
    scene.session().device().synchronize_all();
    gap = {};
    scene.device().delay_copies(round, Nanos(500'000));
    const Handle x = scene.call({}, 4);  // made by compute, like the move
    ASSERT_EQ(scene.picture(), "aabbbb");
    y = {};
    const Handle w = upload(scene);  // uploaded by the reload stream
    ASSERT_EQ(scene.picture(), "aabbbb");
    scene.session().device().synchronize_all();
    EXPECT_EQ(scene.hash(w), expected);
  }
}

// A block that is still being brought in moves once it is there.
TEST(Sliding, WaitsForAReloadUnderWay) {
  Scene scene({.arena = 6, .host = 16, .evict = false, .poison = false});
  scene.device().delay_copies(11, Nanos(500'000));
  for (int round = 0; round < 6; ++round) {
    Handle gap = scene.data(2), y = scene.data(2);
    const uint64_t hash = scene.hash(y);
    ASSERT_TRUE(scene.offload(y));
    ASSERT_TRUE(scene.residency().transfers().prefetch(*y));
    gap = {};
    ASSERT_EQ(scene.picture(), "..aa..");
    const Handle x = scene.data(4);
    EXPECT_EQ(scene.picture(), "aabbbb");
    EXPECT_EQ(scene.hash(y), hash);
  }
}

// Without a tier, blocks go by way of the space above them: from any order to any other.
TEST(Arranging, GoesByTheUpperEnd) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Scene scene({.arena = 96});
    std::vector<Handle> handles;
    for (int i = 0; i < 30; ++i) handles.push_back(scene.data(1 + random() % 2));
    std::shuffle(handles.begin(), handles.end(), random);
    handles.resize(20);  // holes where the others were
    std::vector<uint64_t> hashes;
    for (const Handle& handle : handles) hashes.push_back(scene.hash(handle));

    std::vector<Space::Target> targets;
    Offset to(0);
    for (const Handle& handle : handles) {
      targets.push_back({handle.get(), to});
      to = to + handle->size();
    }
    ASSERT_TRUE(scene.residency().space().relocate(targets));
    for (size_t i = 0; i < handles.size(); ++i) EXPECT_EQ(scene.hash(handles[i]), hashes[i]);
    EXPECT_TRUE(scene.session().arena().offsets().packed());
    const int64_t moves = scene.count(EventKind::kCompact);
    ASSERT_TRUE(scene.residency().space().relocate(targets));
    EXPECT_EQ(scene.count(EventKind::kCompact), moves) << "all are there";
  }
}

}  // namespace
}  // namespace tidemark::testing
