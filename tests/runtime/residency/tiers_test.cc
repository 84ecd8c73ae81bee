// Copies on the host and on disk: kept while they are valid, dropped for storages that need the
// space.
#include <cstring>

#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

constexpr int64_t kMiB = (1 << 20) / kAlignment.count();

TEST(Tiers, AReloadKeepsTheCopyAndTheSecondReleaseIsFree) {
  Scene scene({.host = 8});
  const Handle a = scene.data(2);
  const uint64_t hash = scene.hash(a);
  ASSERT_TRUE(scene.offload(a));
  EXPECT_EQ(scene.used(), Bytes(0));
  EXPECT_EQ(scene.session().host()->used(), units(2));
  EXPECT_EQ(scene.hash(a), hash);
  EXPECT_EQ(scene.session().host()->used(), units(2)) << "clean";
  ASSERT_TRUE(scene.offload(a));
  EXPECT_EQ(scene.stats().offloads, 1);
  EXPECT_EQ(scene.stats().clean_drops, 1);
  EXPECT_EQ(scene.stats().offload_bytes, units(2));
  EXPECT_EQ(scene.hash(a), hash);
  EXPECT_EQ(scene.stats().reloads, 2);
}

TEST(Tiers, CopiesGoWithTheLastUser) {
  Scene scene({.host = 8});
  Handle a = scene.data(2), b = scene.data(3);
  ASSERT_TRUE(scene.offload(a) && scene.offload(b));
  scene.hash(b);
  a = {};
  EXPECT_EQ(scene.session().host()->used(), units(3));
  b = {};
  EXPECT_EQ(scene.session().host()->used(), Bytes(0));
  EXPECT_EQ(scene.used(), Bytes(0));
}

//   host: 4 units, all clean copies of a and b; c needs 2: the oldest copy makes way
TEST(Tiers, CleanCopiesMakeWay) {
  Scene scene({.host = 4});
  const Handle a = scene.data(2), b = scene.data(2), c = scene.data(2);
  const uint64_t hash_a = scene.hash(a), hash_c = scene.hash(c);
  for (const Handle& handle : {a, b}) {
    ASSERT_TRUE(scene.offload(handle));
    scene.hash(handle);
  }
  ASSERT_TRUE(scene.offload(c));
  EXPECT_EQ(scene.session().host()->used(), units(4));
  ASSERT_TRUE(scene.offload(b));
  EXPECT_EQ(scene.stats().clean_drops, 1) << "b's copy is still there";
  EXPECT_FALSE(scene.offload(a)) << "c and b have no other place";
  EXPECT_EQ(scene.hash(a), hash_a);
  EXPECT_EQ(scene.hash(c), hash_c);
}

//   host full -> disk -> what can be computed is evicted -> no
TEST(Tiers, FullTiersPassOn) {
  // The disk's blocks have 4096 bytes, 8 units.
  Scene scene({.host = 2, .disk = 8});
  const Handle x = scene.data(2), y = scene.data(2), z = scene.data(2);
  const Handle a = scene.call({z}, 2);
  const uint64_t hash_y = scene.hash(y), hash_a = scene.hash(a);
  ASSERT_TRUE(scene.offload(x));
  EXPECT_EQ(scene.session().host()->used(), units(2));
  ASSERT_TRUE(scene.offload(y));
  EXPECT_EQ(scene.session().disk()->used(), units(8));
  EXPECT_FALSE(scene.offload(z)) << "both tiers are full";
  ASSERT_TRUE(scene.residency().transfers().release(*a, Reason::kNoSpace))
      << "whatever the director wants";
  EXPECT_TRUE(evicted(a));
  EXPECT_EQ(scene.hash(y), hash_y);
  EXPECT_EQ(scene.hash(a), hash_a);
  EXPECT_LE(scene.session().host()->peak(), units(2));
  EXPECT_LE(scene.session().disk()->peak(), units(8));
}

TEST(Tiers, TooLargeForTheHostGoesToTheDisk) {
  Scene scene({.host = 2, .disk = 16});
  const Handle x = scene.data(3);
  const uint64_t hash = scene.hash(x);
  ASSERT_TRUE(scene.offload(x));
  EXPECT_EQ(scene.session().host()->used(), Bytes(0));
  EXPECT_EQ(scene.hash(x), hash);
}

// The host tier has 2 units, with a copy of `a`, which could be recomputed instead. `x` could
// not: as a last resort, a's copy is dropped.
TEST(Tiers, TheAustereScheduleGivesUpCopiesOfWhatCanBeComputed) {
  Scene scene({.arena = 4, .host = 2});
  const Handle x = scene.data(2);
  const Handle a = scene.call({x}, 2);
  const uint64_t hash_x = scene.hash(x), hash_a = scene.hash(a);
  ASSERT_TRUE(scene.offload(a));
  Handle y = scene.data(4);
  EXPECT_TRUE(offloaded(x));
  EXPECT_TRUE(evicted(a));
  EXPECT_GT(scene.stats().last_resorts, 0);
  y = {};
  EXPECT_EQ(scene.hash(a), hash_a);
  EXPECT_EQ(scene.hash(x), hash_x);
  EXPECT_EQ(scene.stats().recomputes, 1);
}

// Space for a is made by dropping a's own copy, in favour of b's or c's.
TEST(Tiers, WhatIsToComeBackMayHaveToBeComputedInstead) {
  Scene scene({.arena = 4, .host = 2});
  const Handle a = scene.call({}, 2);
  const uint64_t hash_a = scene.hash(a);
  ASSERT_TRUE(scene.offload(a));
  const Handle b = scene.data(2), c = scene.data(2);
  const uint64_t hash_b = scene.hash(b), hash_c = scene.hash(c);
  EXPECT_EQ(scene.hash(a), hash_a);
  EXPECT_EQ(scene.stats().recomputes, 1);
  EXPECT_EQ(scene.hash(b), hash_b);
  EXPECT_EQ(scene.hash(c), hash_c);
  EXPECT_EQ(scene.session().host()->used(), units(2));
}

//   offload x | run y -> z | prefetch x | run y -> w     compute waits for copies that it does
//   not need
TEST(Tiers, WithoutOverlapComputeWaits) {
  Scene scene({.arena = 8, .host = 8, .overlap = false, .poison = false});
  scene.device().delay_copies(1, Nanos(300'000));
  const Handle x = scene.data(2), y = scene.data(1);
  const uint64_t hash = scene.hash(x);
  scene.session().step([&] {
    ASSERT_TRUE(scene.offload(x));
    const Handle z = scene.call({y}, 3);
    ASSERT_TRUE(scene.residency().transfers().prefetch(*x));
    const Handle w = scene.call({y}, 2);
  });
  const auto runs = scene.events(EventKind::kOperator);
  EXPECT_LE(scene.events(EventKind::kOffload).at(0).end, runs.at(0).start);
  EXPECT_LE(scene.events(EventKind::kPrefetch).at(0).end, runs.at(1).start);
  EXPECT_EQ(scene.hash(x), hash);
}

TEST(Tiers, ACopyUnderWayIsNotOvertaken) {
  Scene scene({.arena = 8, .host = 8, .poison = false});
  scene.device().delay_copies(3, Nanos(400'000));
  std::vector<uint64_t> expected, got;
  // The block of each offloaded storage is overwritten at once, and each storage is read back
  // from a copy that has hardly finished.
  for (int round = 0; round < 8; ++round) {
    const Handle x = scene.data(4);
    const Handle y = scene.call({x}, 4);
    expected.push_back(scene.hash(y));
    ASSERT_TRUE(scene.offload(y));
    const Handle over = scene.call({x}, 4);
    ASSERT_TRUE(scene.offload(over));
    got.push_back(scene.hash(y));
  }
  EXPECT_EQ(got, expected);
}

TEST(Tiers, ALargeTensorIsReadInPieces) {
  Scene scene({.arena = 24 << 11});
  const Handle x = scene.data(9 << 11);  // 9 MiB
  const Handle y = scene.data(1);
  std::vector<uint32_t> words(static_cast<size_t>(x->bytes().count() / 4));
  ASSERT_TRUE(scene.residency().download(*x, Bytes(0), x->bytes(), copy_into(words.data())));
  std::vector<uint32_t> part(1000);
  const int64_t at = (4 << 20) - 2000;
  ASSERT_TRUE(scene.residency().download(*x, Bytes(at), Bytes(4000), copy_into(part.data())));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), words.begin() + at / 4));
  EXPECT_NE(words.front(), words.back());
  EXPECT_NE(words[words.size() - 1], words[words.size() - 2]);
}

// Holds however slow the link is.
TEST(Uploads, OfParametersHoldLittleHostMemory) {
  Scene scene({.arena = 64 * kMiB});
  scene.device().delay_copies(1, Nanos(50'000'000));
  std::vector<Handle> uploaded;
  for (int i = 0; i < 14; ++i) {
    uploaded.push_back(scene.data(4 * kMiB, Category::kParameter));
    EXPECT_LE(scene.residency().kept().host_copies, 8);
  }
}

// Words that tell where they come from.
void words_at(Bytes offset, std::span<std::byte> piece) {
  auto word = static_cast<uint32_t>(offset.count() / 4);
  for (size_t at = 0; at < piece.size(); at += 4, ++word) {
    const uint32_t value = word * 2654435761U;
    std::memcpy(&piece[at], &value, sizeof(value));
  }
}

IntrusivePtr<Storage> empty(Scene& scene, Bytes bytes) {
  return scene.residency().storages().create(bytes, Category::kParameter, "pieces");
}

// Holds however slow the link is.
TEST(Uploads, InPiecesHoldLittleHostMemory) {
  Scene scene({.arena = 64 * kMiB});
  scene.device().delay_copies(1, Nanos(5'000'000));
  const Bytes size = 9_MiB + 12_B;
  const Handle x(empty(scene, size));
  Bytes next{0};
  scene.residency().upload(*x, [&](Bytes offset, std::span<std::byte> piece) {
    EXPECT_EQ(offset, next);
    EXPECT_LE(scene.residency().kept().host_copies, 3);
    next += Bytes(static_cast<int64_t>(piece.size()));
    words_at(offset, piece);
  });
  EXPECT_EQ(next, size);
  std::vector<std::byte> got(static_cast<size_t>(size.count())), expected = got;
  ASSERT_TRUE(scene.residency().download(*x, Bytes(0), size, copy_into(got.data())));
  words_at(Bytes(0), expected);
  EXPECT_EQ(got, expected);
}

// Pieces copied before a source threw are still on their way when the block is reused.
TEST(Uploads, ASourceThatThrowsLeavesNothing) {
  const SceneOptions options{.arena = 16 * kMiB, .poison = false};
  Scene other(options);
  const uint64_t hash = other.hash(other.call({}, 12 * kMiB));
  Scene scene(options);
  const Handle x(empty(scene, 12_MiB));
  scene.device().delay_copies(1, Nanos(200'000'000));
  const auto source = [&](Bytes offset, std::span<std::byte> piece) {
    if (offset == 4_MiB) throw DataError("file", 1, "gone");
    words_at(offset, piece);
  };
  EXPECT_THROW(scene.residency().upload(*x, source), DataError);
  EXPECT_EQ(x->residence(), Residence::kEmpty);
  EXPECT_EQ(scene.used(), Bytes(0));
  const Handle y = scene.call({}, 12 * kMiB);
  scene.session().device().synchronize_all();
  EXPECT_EQ(scene.hash(y), hash);
}

}  // namespace
}  // namespace tidemark::testing
