// Writes in place: storages that would be recomputed from the old contents are saved first.
#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

//   w -> r     r evicted, then w written
TEST(InPlace, BringsBackEvictedReadersFirst) {
  Scene scene;
  const Handle w = scene.data(), x = scene.data();
  const Handle r = scene.call({w});
  const uint64_t hash = scene.hash(r);
  ASSERT_TRUE(scene.evict(r));
  scene.update({w, x});
  EXPECT_TRUE(resident(r));
  EXPECT_EQ(scene.events(EventKind::kRecompute).at(0).reason, Reason::kOverwritten);
  EXPECT_FALSE(scene.evict(r)) << "its source is no more";
  EXPECT_EQ(scene.hash(r), hash);
}

struct Chain {
  Scene scene;
  Handle w = scene.data(), x = scene.data();
  Handle a = scene.call({w}), r = scene.call({a});
  uint64_t hash = scene.hash(r);
};

//   w -> (a) -> r     through a storage that nobody uses
TEST(InPlace, BringsBackReadersOfReaders) {
  Chain chain;
  auto& [scene, w, x, a, r, hash] = chain;
  a = {};
  ASSERT_TRUE(scene.evict(r));
  scene.update({w, x});
  EXPECT_TRUE(resident(r));
  EXPECT_EQ(scene.hash(r), hash);
}

//   w -> (a) -> r     the same, once a schedule has computed a again and freed it
TEST(InPlace, BringsBackReadersOfWhatAScheduleComputedAgain) {
  Chain chain;
  auto& [scene, w, x, a, r, hash] = chain;
  const IntrusivePtr<Storage> source = a.ptr();
  a = {};
  ASSERT_TRUE(scene.evict(r));
  Rematerialiser& rematerialiser = scene.residency().rematerialiser();
  rematerialiser.claim(*source);
  ASSERT_TRUE(scene.residency().recompute(*source, {}));
  rematerialiser.unclaim(*source);
  ASSERT_FALSE(source->resident());
  scene.update({w, x});
  EXPECT_EQ(scene.hash(r), hash);
}

//   w -> a -> r     a is there and used: r needs w no more, and stays away
TEST(InPlace, LeavesAloneWhatCanDoWithoutTheOldContents) {
  Chain chain;
  auto& [scene, w, x, a, r, hash] = chain;
  ASSERT_TRUE(scene.evict(r));
  scene.update({w, x});
  EXPECT_TRUE(evicted(r));
  EXPECT_FALSE(scene.evict(a)) << "it cannot be computed any more";
  a = {};
  EXPECT_EQ(scene.hash(r), hash);
}

// Making space for the write itself must not evict a reader of the storage being written.
//   arena: w r z x + 1 unit; o (2 units) is on the tier and read by the write: something has to
//   go
TEST(InPlace, EvictsNoReaderDuringTheWrite) {
  Scene scene({.arena = 6, .host = 2, .compact = false});
  const Handle w = scene.data(), x = scene.data(), o = scene.data(2);
  ASSERT_TRUE(scene.offload(o));
  const Handle r = scene.call({w});  // the stalest, so the policy's first choice
  const Handle z = scene.call({x});
  scene.call({x});
  const Handle filler = scene.call({x});
  const uint64_t hash_r = scene.hash(r), hash_z = scene.hash(z);
  for (const Handle& handle : {r, z, filler}) handle->offload_pinned = true;
  scene.update({w, x, o});
  EXPECT_TRUE(resident(r));
  EXPECT_TRUE(evicted(z));
  EXPECT_EQ(scene.hash(r), hash_r);
  EXPECT_EQ(scene.hash(z), hash_z);
  EXPECT_EQ(scene.count(EventKind::kOutOfMemory), 0);
}

TEST(InPlace, WhatWasWrittenHasNoRecipe) {
  Scene scene;
  Handle x = scene.data(), y = scene.data();
  const Handle a = scene.call({x});
  scene.update({a, y});
  EXPECT_EQ(a->version(), 1U);
  x = {};
  EXPECT_EQ(scene.used(), units(2)) << "nothing reads x any more";
  EXPECT_FALSE(scene.evict(a));
}

TEST(InPlace, InvalidatesACleanCopy) {
  Scene scene({.host = 8});
  const Handle a = scene.data(), b = scene.data();
  ASSERT_TRUE(scene.offload(a));
  const uint64_t before = scene.hash(a);  // reloads; the copy stays
  EXPECT_EQ(scene.session().host()->used(), units(1));
  scene.update({a, b});
  EXPECT_EQ(scene.session().host()->used(), Bytes(0));
  const uint64_t after = scene.hash(a);
  EXPECT_NE(after, before);
  ASSERT_TRUE(scene.offload(a));
  EXPECT_EQ(scene.stats().offloads, 2) << "it had to be copied again";
  EXPECT_EQ(scene.stats().clean_drops, 0);
  EXPECT_EQ(scene.hash(a), after);
}

// An evicted storage that is to be written is brought back first.
TEST(InPlace, WritesAnEvictedStorage) {
  const auto run = [](bool release) {
    Scene scene;
    const Handle x = scene.data();
    const Handle a = scene.call({x}), b = scene.call({a});
    if (release) {
      EXPECT_TRUE(scene.evict(b) && scene.evict(a));
    }
    scene.update({a, x});
    return std::vector{scene.hash(a), scene.hash(b)};
  };
  EXPECT_EQ(run(true), run(false));
}

// Several writes, each of the state that the previous one left.
TEST(InPlace, EachReaderKeepsTheVersionThatItRead) {
  const auto run = [](bool release) {
    Scene scene({.host = 4});
    const Handle w = scene.data(), x = scene.data();
    std::vector<Handle> readers;
    std::vector<uint64_t> hashes;
    for (int i = 0; i < 6; ++i) {
      readers.push_back(scene.call({w, x}));
      if (release) {
        EXPECT_TRUE(scene.evict(readers.back()));
      }
      scene.update({w, x});
      if (release && i % 2 == 0) {
        EXPECT_TRUE(scene.offload(w));
      }
    }
    for (const Handle& reader : readers) hashes.push_back(scene.hash(reader));
    return hashes;
  };
  EXPECT_EQ(run(true), run(false));
}

}  // namespace
}  // namespace tidemark::testing
