#include "bench/recording_arena.h"

#include <gtest/gtest.h>

#include "bench/fit_rule.h"
#include "bench/training_run.h"

namespace tidemark {
namespace {

using namespace literals;

TraceEvent allocated(int64_t block, Bytes size, Category category) {
  return {TraceEvent::kAllocate, category, block, size};
}
TraceEvent freed(int64_t block) { return {.kind = TraceEvent::kFree, .block = block}; }

struct Recorded {
  MemoryTrace trace;
  std::unique_ptr<Device> device = make_device("sim:host");
  RecordingArena arena{*device, 8_KiB, trace};
  Block allocate(Bytes size, Category category = Category::kActivation) {
    return arena.allocate(size, category)->block;
  }
};

TEST(RecordingArena, WritesDownWhatComesAndGoes) {
  Recorded r;
  const Block a = r.allocate(Bytes(700), Category::kParameter);
  const Block b = r.allocate(1_KiB);
  EXPECT_FALSE(r.arena.allocate(8_KiB, Category::kData));  // no room: not recorded
  r.arena.free(a, Category::kParameter, {});
  EXPECT_FALSE(r.arena.allocate(8_KiB, Category::kData));
  const Block c = r.allocate(512_B, Category::kWorkspace);
  r.arena.free(b, Category::kActivation, {});
  r.arena.free(c, Category::kWorkspace, {});
  const std::vector<TraceEvent> expected{allocated(0, Bytes(700), Category::kParameter),
                                         allocated(1, 1_KiB, Category::kActivation),
                                         freed(0),
                                         allocated(2, 512_B, Category::kWorkspace),
                                         freed(1),
                                         freed(2)};
  EXPECT_EQ(r.trace.events, expected);
  EXPECT_EQ(r.trace.blocks, 3);
}

//   aabb  ->  bb..  ->  ....     b slides, and is b all along
TEST(RecordingArena, ASlidBlockIsOneAllAlong) {
  Recorded r;
  const Block a = r.allocate(1_KiB);
  const Block b = r.allocate(1_KiB);
  r.arena.free(a, Category::kActivation, {});
  r.arena.free(b, Category::kActivation, {});
  const auto moved = r.arena.allocate_at(Offset(0), 1_KiB, Category::kActivation);
  ASSERT_TRUE(moved);
  r.arena.free(moved->block, Category::kActivation, {});  // a move that fails: back again
  ASSERT_TRUE(r.arena.allocate_at(b.offset, 1_KiB, Category::kActivation));
  r.arena.free(b, Category::kActivation, {});
  const std::vector<TraceEvent> expected{allocated(0, 1_KiB, Category::kActivation),
                                         allocated(1, 1_KiB, Category::kActivation), freed(0),
                                         freed(1)};
  EXPECT_EQ(r.trace.events, expected);
}

TEST(RecordingArena, APlaceAskedForOtherwiseIsABlockOfItsOwn) {
  Recorded r;
  const Block a = r.allocate(1_KiB);
  r.arena.free(a, Category::kActivation, {});
  EXPECT_FALSE(r.arena.allocate(16_KiB, Category::kActivation));  // something came between
  ASSERT_TRUE(r.arena.allocate_at(Offset(0), 1_KiB, Category::kData));
  ASSERT_TRUE(r.arena.allocate_at(Offset(2048), 1_KiB, Category::kData));
  const std::vector<TraceEvent> expected{allocated(0, 1_KiB, Category::kActivation), freed(0),
                                         allocated(1, 1_KiB, Category::kData),
                                         allocated(2, 1_KiB, Category::kData)};
  EXPECT_EQ(r.trace.events, expected);
}

TrainingRun small(std::optional<double> room) {
  return {.model = "resnet18",
          .device = "sim:a100-80gb",
          .batch = 16,
          .image = 8,
          .channels = 1,
          .classes = 10,
          .room = room};
}

// Replayed by the arena's own rule, an unmanaged run takes what it took.
TEST(RecordingArena, AnUnmanagedRunIsReplayedToItsPeak) {
  MemoryTrace trace;
  const TrainingResult result = train(small(std::nullopt), [&](Device& device, Bytes capacity) {
    return std::make_unique<RecordingArena>(device, capacity, trace);
  });
  const FitRule arena = fit_rules().front();
  EXPECT_EQ(replay(trace, arena, kEndless), result.unmanaged_peak);
  EXPECT_EQ(replay(trace, arena, result.unmanaged_peak), result.unmanaged_peak);
  EXPECT_EQ(replay(trace, arena, result.unmanaged_peak - kAlignment), std::nullopt);
}

TEST(RecordingArena, ARunWithinABudgetIsRecordedWithoutItsSlides) {
  MemoryTrace trace;
  const TrainingResult result = train(small(0.2), [&](Device& device, Bytes capacity) {
    return std::make_unique<RecordingArena>(device, capacity, trace);
  });
  int64_t slides = 0, copies = 0;
  for (const StepStats& step : result.steps) {
    slides += step.compactions;
    copies += step.offloads + step.evictions;
  }
  ASSERT_GT(slides, 0);
  ASSERT_GT(copies, 0);
  EXPECT_LE(trace.max_live(), result.budget);
  const TrainingResult again = train(small(0.2), [&](Device& device, Bytes capacity) {
    return std::make_unique<Arena>(device, MemoryKind::kDevice, capacity);
  });
  EXPECT_EQ(again.moved, result.moved) << "recording changes nothing";
}

}  // namespace
}  // namespace tidemark
