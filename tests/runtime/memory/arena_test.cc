#include "runtime/memory/arena.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/runtime/memory/fake_device.h"

namespace tidemark {
namespace {

using namespace literals;

TEST(ArenaTest, MapsExactlyTheBudget) {
  FakeDevice device;
  Arena arena(device, MemoryKind::kDevice, Bytes(1'000'001));
  ASSERT_EQ(device.mapped.size(), 1U);
  EXPECT_EQ(device.mapped[0], std::make_pair(MemoryKind::kDevice, Bytes(1'000'001)));
  EXPECT_EQ(arena.offsets().capacity(), Bytes(1'000'001 / 512 * 512));
  EXPECT_EQ(arena.address(Offset(1024)), arena.address(Offset(0)) + 1024);
  EXPECT_THROW(arena.address(Offset(1'000'448)), std::logic_error);
  EXPECT_THROW(arena.address(Offset(-512)), std::logic_error);
}

TEST(ArenaTest, HasNoAddressesWithoutData) {
  FakeDevice device(false);
  Arena arena(device, MemoryKind::kDevice, 1_MiB);
  EXPECT_TRUE(arena.allocate(1_KiB, Category::kData));
  EXPECT_EQ(arena.address(Offset(512)), nullptr);
}

TEST(ArenaTest, OfNothingAnswersNone) {
  FakeDevice device;
  Arena arena(device, MemoryKind::kDevice, 0_B);
  EXPECT_FALSE(arena.allocate(1_B, Category::kData));
  EXPECT_EQ(arena.address(Offset(0)), nullptr);
}

TEST(ArenaTest, CountsByCategoryAsRounded) {
  FakeDevice device;
  Arena arena(device, MemoryKind::kDevice, 1_MiB);
  const Block weight = arena.allocate(Bytes(1000), Category::kParameter)->block;
  const Block activation = arena.allocate(2_KiB, Category::kActivation)->block;
  EXPECT_EQ(arena.live()[Category::kParameter], 1_KiB);
  EXPECT_EQ(arena.live()[Category::kActivation], 2_KiB);
  EXPECT_EQ(arena.live().total(), arena.offsets().used());
  arena.free(weight, Category::kParameter, {});
  EXPECT_EQ(arena.live()[Category::kParameter], 0_B);
  EXPECT_EQ(arena.live().total(), 2_KiB);
  EXPECT_THROW(arena.free(activation, Category::kParameter, {}), std::logic_error);
  EXPECT_EQ(arena.live().total(), 2_KiB);
}

//   parameters   ############
//   activations      ####--------      the peak is where both are live
//   workspace              ##
TEST(ArenaTest, PeakSaysWhatItWasMadeOf) {
  FakeDevice device;
  Arena arena(device, MemoryKind::kDevice, 1_MiB);
  const Block weight = arena.allocate(4_KiB, Category::kParameter)->block;
  const Block activation = arena.allocate(8_KiB, Category::kActivation)->block;
  arena.free(activation, Category::kActivation, {});
  const Block workspace = arena.allocate(2_KiB, Category::kWorkspace)->block;
  EXPECT_EQ(arena.peak_live()[Category::kParameter], 4_KiB);
  EXPECT_EQ(arena.peak_live()[Category::kActivation], 8_KiB);
  EXPECT_EQ(arena.peak_live()[Category::kWorkspace], 0_B);
  EXPECT_EQ(arena.peak_live().total(), 12_KiB);
  EXPECT_EQ(arena.peak_reserved(), 12_KiB);

  arena.reset_peak();
  EXPECT_EQ(arena.peak_live().total(), 6_KiB);
  EXPECT_EQ(arena.peak_live()[Category::kWorkspace], 2_KiB);
  arena.free(weight, Category::kParameter, {});
  EXPECT_EQ(arena.peak_live().total(), 6_KiB);
  arena.free(workspace, Category::kWorkspace, {});
}

//   AAAA b ....   ->   ..ww b ....
TEST(ArenaTest, WorkspacesAreCutFromTheUpperEndOfAHole) {
  FakeDevice device;
  Arena arena(device, MemoryKind::kDevice, 8_KiB);
  const Block a = arena.allocate(2_KiB, Category::kActivation)->block;
  arena.allocate(512_B, Category::kActivation);
  arena.free(a, Category::kActivation, Event{StreamId::kCompute, 5});
  const auto workspace = arena.allocate(1_KiB, Category::kWorkspace);
  EXPECT_EQ(workspace->block, (Block{Offset(1024), 1_KiB}));
  EXPECT_EQ(workspace->fence, Fence(Event{StreamId::kCompute, 5}));
  EXPECT_EQ(arena.allocate(512_B, Category::kActivation)->block.offset, Offset(0));
}

TEST(ArenaTest, AllocateAtCountsToo) {
  FakeDevice device;
  Arena arena(device, MemoryKind::kDevice, 8_KiB);
  EXPECT_TRUE(arena.allocate_at(Offset(4096), 1_KiB, Category::kOptimizerState));
  EXPECT_FALSE(arena.allocate_at(Offset(4096), 1_KiB, Category::kOptimizerState));
  EXPECT_EQ(arena.live()[Category::kOptimizerState], 1_KiB);
  EXPECT_EQ(arena.peak_live().total(), 1_KiB);
  EXPECT_EQ(arena.peak_reserved(), 5_KiB);
}

TEST(ArenaTest, KeepsItsBudgetUnderRandomUse) {
  FakeDevice device(false);
  const Bytes budget = 64_KiB;
  Arena arena(device, MemoryKind::kDevice, budget);
  std::vector<std::pair<Block, Category>> live;
  Bytes most{0};
  uint64_t random = 1;
  for (int i = 0; i < 5000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const auto category = static_cast<Category>((random >> 33) % kCategoryCount);
    if ((random >> 62) != 0) {
      const auto allocation =
          arena.allocate(Bytes(static_cast<int64_t>((random >> 40) % 6000)), category);
      if (allocation) live.emplace_back(allocation->block, category);
    } else if (!live.empty()) {
      std::swap(live[(random >> 20) % live.size()], live.back());
      arena.free(live.back().first, live.back().second, {});
      live.pop_back();
    }
    CategoryBytes expected;
    for (const auto& [block, c] : live) expected[c] += block.size;
    for (size_t c = 0; c < kCategoryCount; ++c) {
      ASSERT_EQ(arena.live()[static_cast<Category>(c)], expected[static_cast<Category>(c)]);
    }
    most = std::max(most, expected.total());
    ASSERT_EQ(arena.peak_live().total(), most);
    ASSERT_LE(arena.peak_reserved(), budget);
  }
}

//   a | plan: b, c, later d over b | e
TEST(ArenaTest, APlansRangeIsOneBlockWithOneFence) {
  FakeDevice device(false);
  Arena arena(device, MemoryKind::kDevice, 8_KiB);
  const auto a = arena.allocate(1_KiB, Category::kParameter);
  const Event before{StreamId::kReload, 3}, used{StreamId::kOffload, 7};
  arena.hold({Offset(1024), 7_KiB}, before);
  ASSERT_TRUE(arena.open_plan({Offset(1024), 4_KiB}));
  EXPECT_EQ(arena.plan_fence(), Fence(before));
  EXPECT_EQ(arena.used(), 1_KiB) << "nothing of it is in use yet";
  EXPECT_EQ(arena.peak_reserved(), 5_KiB);
  const Block b = arena.place(Offset(1024), 1_KiB, Category::kActivation);
  const Block c = arena.place(Offset(2048), Bytes(700), Category::kActivation);
  EXPECT_EQ(c.size, 1_KiB);
  EXPECT_EQ(arena.used(), 3_KiB);
  EXPECT_EQ(arena.allocate(4_KiB, Category::kData), std::nullopt) << "outside there are 3 KiB";
  arena.free(b, Category::kActivation, used);
  Fence both(before);
  both.include(used);
  EXPECT_EQ(arena.plan_fence(), both);
  const Block d = arena.place(Offset(1024), 1_KiB, Category::kGradient);
  EXPECT_EQ(arena.live()[Category::kGradient], 1_KiB);
  EXPECT_THROW(arena.place(Offset(5 * 1024), 1_KiB, Category::kData), std::logic_error);
  arena.close_plan({d, c});
  EXPECT_EQ(arena.used(), 3_KiB);
  const auto e = arena.allocate_at(Offset(3 * 1024), 1_KiB, Category::kData);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->fence, both) << "what was unused of the range waits as well";
  EXPECT_EQ(arena.allocate_at(Offset(1024), 1_KiB, Category::kData), std::nullopt);
  arena.free(d, Category::kGradient, {});
  arena.free(c, Category::kActivation, {});
  arena.free(a->block, Category::kParameter, {});
}

TEST(ArenaTest, APlanNeedsOneHole) {
  FakeDevice device(false);
  Arena arena(device, MemoryKind::kDevice, 8_KiB);
  arena.allocate_at(Offset(2048), 1_KiB, Category::kData);
  EXPECT_FALSE(arena.open_plan({Offset(0), 4_KiB}));
  EXPECT_TRUE(arena.open_plan({Offset(0), 2_KiB}));
}

}  // namespace
}  // namespace tidemark
