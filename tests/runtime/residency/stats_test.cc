// Counts are exact, and the events agree with them.
#include <map>
#include <random>

#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

TEST(Stats, CountWhatHappens) {
  Scene scene({.host = 16});
  const Handle outside = scene.data(2);
  Handle a;
  const StepStats stats = scene.session().step([&] {
    a = scene.call({outside}, 3);
    const Handle b = scene.call({a}, 1, 4);
    ASSERT_TRUE(scene.evict(a));
    ASSERT_TRUE(scene.offload(outside));
    scene.hash(a);  // reload + recompute
    ASSERT_TRUE(scene.offload(outside));
    ASSERT_TRUE(scene.residency().transfers().prefetch(*outside));
    ASSERT_TRUE(scene.evict(b));
    scene.hash(b);
  });
  EXPECT_EQ(stats.operators, 2);
  EXPECT_EQ(stats.evictions, 2);
  EXPECT_EQ(stats.evicted_bytes, units(4));
  EXPECT_EQ(stats.recomputes, 2);
  EXPECT_EQ(stats.offloads, 1);
  EXPECT_EQ(stats.clean_drops, 1);
  EXPECT_EQ(stats.offload_bytes, units(2));
  EXPECT_EQ(stats.reloads, 2);
  EXPECT_EQ(stats.prefetches, 1);
  EXPECT_EQ(stats.reload_bytes, units(4));
  EXPECT_EQ(stats.last_resorts, 0);
  EXPECT_EQ(stats.peak_live, units(2 + 3 + 1 + 4));
  EXPECT_GT(stats.recompute_time, Nanos(0));
  EXPECT_GT(stats.duration, Nanos(0));

  const StepStats empty = scene.session().step([] {});
  EXPECT_EQ(empty.operators + empty.evictions + empty.reloads + empty.recomputes, 0);
  EXPECT_EQ(empty.recompute_time, Nanos(0));
}

// More recomputations than are timed at once.
TEST(Stats, TimeEveryRecomputation) {
  constexpr int64_t kMany = 70000;
  Scene scene({}, std::make_unique<FaultyDevice>(make_sim_device(device_profile("sim:host"))));
  const Handle outside = scene.data(1);
  const auto recompute = [&](int64_t times) {
    return scene.session().step([&] {
      const Handle a = scene.call({outside}, 1);
      for (int64_t i = 0; i < times; ++i) {
        ASSERT_TRUE(scene.evict(a));
        scene.hash(a);
      }
    });
  };
  const StepStats one = recompute(1), many = recompute(kMany);
  EXPECT_EQ(many.recomputes, kMany);
  EXPECT_GT(one.recompute_time, Nanos(0));
  EXPECT_EQ(many.recompute_time.count(), kMany * one.recompute_time.count());
}

TEST(Stats, AgreeWithTheEvents) {
  std::mt19937 random(5);
  SceneOptions options{.arena = 14, .host = 24, .disk = 64};
  options.delta = {};
  Scene scene(options);
  const Handle parameter = scene.data(1, Category::kParameter);
  int64_t released = 0;
  for (int step = 0; step < 4; ++step) {
    std::map<EventKind, int64_t> before, counts;
    std::map<EventKind, Bytes> bytes_before, bytes;
    const auto read = [&](auto& to, auto& sums) {
      scene.session().events().for_each([&](const EventRecord& event) {
        ++to[event.kind];
        sums[event.kind] += event.bytes;
      });
    };
    read(before, bytes_before);
    const StepStats stats = scene.session().step([&] {
      std::vector<Handle> live{scene.data(1 + random() % 3)};
      for (int i = 0; i < 60; ++i) {
        if (i == 30) scene.residency().set_phase(Phase::kBackward);
        const std::vector<Handle> inputs{live[random() % live.size()], parameter};
        if (random() % 6 == 0) {
          scene.update(inputs);
        } else {
          live.push_back(scene.call(inputs, 1 + random() % 3, random() % 2));
        }
        if (live.size() > 9) live.erase(live.begin() + random() % 9);
      }
    });
    read(counts, bytes);
    const auto count = [&](EventKind kind) { return counts[kind] - before[kind]; };
    const auto sum = [&](EventKind kind) { return bytes[kind] - bytes_before[kind]; };
    EXPECT_EQ(stats.operators, 60);
    EXPECT_EQ(stats.operators, count(EventKind::kOperator));
    EXPECT_EQ(stats.evictions, count(EventKind::kEvict));
    EXPECT_EQ(stats.evicted_bytes, sum(EventKind::kEvict));
    EXPECT_EQ(stats.offloads, count(EventKind::kOffload));
    EXPECT_EQ(stats.offload_bytes, sum(EventKind::kOffload));
    EXPECT_EQ(stats.clean_drops, count(EventKind::kDropClean));
    EXPECT_EQ(stats.prefetches, count(EventKind::kPrefetch));
    EXPECT_EQ(stats.reloads, count(EventKind::kReload) + count(EventKind::kPrefetch));
    EXPECT_EQ(stats.reload_bytes, sum(EventKind::kReload) + sum(EventKind::kPrefetch));
    EXPECT_EQ(stats.recomputes, count(EventKind::kRecompute));
    EXPECT_LE(stats.compactions, count(EventKind::kCompact));
    EXPECT_EQ(stats.compactions == 0, count(EventKind::kCompact) == 0);
    EXPECT_LE(stats.peak_reserved, units(14));
    released += stats.evictions + stats.offloads;
  }
  EXPECT_GT(released, 0);
  // Everything that ran on a stream has its times.
  for (const EventKind kind : {EventKind::kOperator, EventKind::kRecompute, EventKind::kOffload,
                               EventKind::kReload, EventKind::kPrefetch, EventKind::kCompact}) {
    for (const EventRecord& event : scene.events(kind)) {
      EXPECT_GT(event.end, Nanos(0)) << to_string(kind);
      EXPECT_LE(event.start, event.end) << to_string(kind);
    }
  }
}

}  // namespace
}  // namespace tidemark::testing
