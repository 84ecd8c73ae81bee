// Schedules by hand in which a call runs as its variant, at the edges: in place over what the
// program has dropped, and before the producer of what the call itself reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/executor/step_planner.h"
#include "runtime/schedule/schedule_validator.h"
#include "tests/runtime/executor/toy_training.h"
#include "tests/runtime/residency/scene.h"
#include "tests/runtime/schedule/schedule_builder.h"

namespace tidemark::testing {
namespace {

constexpr int64_t kWords = 128;
constexpr int kSteps = 6;

// The operator's variant that reads these storages; 0: there is none.
uint32_t variant_reading(const StepTrace::Op& op, std::vector<uint32_t> storages) {
  std::sort(storages.begin(), storages.end());
  for (uint32_t v = 1; v <= op.variants.size(); ++v) {
    std::vector<uint32_t> reads;
    for (const StepTrace::Input& input : op.implementation(v).inputs)
      reads.push_back(input.storage);
    std::sort(reads.begin(), reads.end());
    if (reads == storages) return v;
  }
  return 0;
}

// A session whose steps follow schedules by `make`, which is given each step's trace.
struct ByHand {
  using Make = std::function<Schedule(const StepTrace&)>;
  explicit ByHand(const Make& make) : scene(SceneOptions{.learn_costs = false}) {
    PlanOptions options = quiet(&said);
    options.producer = [make](const StepTrace& trace, const PlanLimits& limits,
                              const std::vector<Bytes>&) -> std::optional<Schedule> {
      Schedule schedule = make(trace);
      for (const std::string& fault : schedule_violations(trace, limits, schedule))
        ADD_FAILURE() << fault;
      return schedule;
    };
    scene.session().plan_steps(options);
  }
  Handle call(const std::vector<Handle>& inputs, uint32_t salt) {
    return toy_call(scene.session(), inputs, {{kWords}}, salt).front();
  }
  // The step's reads are the same in each.
  void run(const std::function<uint64_t()>& step) {
    for (int i = 0; i < kSteps; ++i) {
      uint64_t read = 0;
      const StepStats& stats = scene.session().step([&] { read = step(); });
      if (i == 0) expected = read;
      EXPECT_EQ(read, expected) << "step " << i;
      planned += stats.planned;
      if (stats.planned) recomputed += stats.recomputes;
    }
  }
  void expect_followed() {
    EXPECT_EQ(planned, kSteps - 2) << ::testing::PrintToString(said);
    EXPECT_EQ(recomputed, 0);
    EXPECT_EQ(scene.session().planner()->counts().mismatches, 0)
        << ::testing::PrintToString(said);
  }

  std::vector<std::string> said;
  Scene scene;
  uint64_t expected = 0;
  int planned = 0;
  int64_t recomputed = 0;
};

// The same schedule with that instruction, the `index`-th, in place of `input`.
Schedule over(Schedule schedule, size_t index, uint32_t input, int64_t peak) {
  schedule.code[index].overwrites = input;
  for (Schedule::Block& block : schedule.blocks) {
    if (block.storage == input) block.end = static_cast<uint32_t>(index);
  }
  schedule.peak = Bytes(peak);
  return schedule;
}

// a -> y, then the program drops a; (w, y) -> g; (g, y) -> z, which runs from g and a, over a.
TEST(Variants, RunInPlaceOfWhatTheProgramHasDropped) {
  for (const bool placed : {true, false}) {
    SCOPED_TRACE(placed);
    enum : uint32_t { kW, kA, kY, kG, kZ };
    ByHand by_hand([&](const StepTrace& trace) {
      const uint32_t variant = variant_reading(trace.ops[3], {kA, kG});
      EXPECT_NE(variant, 0U);
      ScheduleBuilder b(trace, placed);
      b.initial(kW, 0).run(0, {512}).run(1, {1024}).run(2, {1536});
      b.run_variant(3, variant, {512}).free(kY).free(kG).run(4).free(kZ);
      return over(b.build(), 3, kA, 2048);
    });
    const Handle w = by_hand.scene.data(1, Category::kParameter);
    by_hand.run([&] {
      Handle a = by_hand.call({w}, 1);
      Handle y = by_hand.call({a}, 2);
      a = {};
      Handle g = by_hand.call({y, w}, 3);
      const Handle z = by_hand.call({g, y}, 4);
      y = g = {};
      return by_hand.scene.hash(z);
    });
    by_hand.expect_followed();
  }
}

// The same, where what is overwritten cannot be computed again.
TEST(Variants, RunInPlaceOfAnUpload) {
  ByHand by_hand([&](const StepTrace& trace) {
    const uint32_t x = trace.ops[0].outputs[0], y = trace.ops[1].outputs[0],
                   g = trace.ops[2].outputs[0], z = trace.ops[3].outputs[0];
    const uint32_t variant = variant_reading(trace.ops[3], {x, g});
    EXPECT_NE(variant, 0U);
    uint32_t w = 0;
    while (!trace.storages[w].at_start) ++w;
    ScheduleBuilder b(trace, false);
    b.initial(w).run(0).run(1).run(2);
    b.run_variant(3, variant).free(y).free(g).run(4).free(z);
    return over(b.build(), 3, x, 2048);
  });
  const Handle w = by_hand.scene.data(1, Category::kParameter);
  by_hand.run([&] {
    Handle x = toy_upload(by_hand.scene.session(), kWords, 77, Category::kData);
    Handle y = by_hand.call({x}, 2);
    x = {};
    Handle g = by_hand.call({y, w}, 3);
    const Handle z = by_hand.call({g, y}, 4);
    y = g = {};
    return by_hand.scene.hash(z);
  });
  by_hand.expect_followed();
}

// y's call waits behind z's, which runs from a instead of y. Then z cannot be evicted: it could
// not be computed again before y is there.
TEST(Variants, ARecipeWaitsForTheFirstRunsOfItsInputs) {
  enum : uint32_t { kW, kA, kY, kG, kZ, kU };
  ByHand by_hand([&](const StepTrace& trace) {
    const uint32_t variant = variant_reading(trace.ops[3], {kA, kG});
    EXPECT_NE(variant, 0U);
    ScheduleBuilder b(trace, false);
    b.initial(kW).run(0).run(2).run_variant(3, variant).run(4).run(1);
    for (const uint32_t s : {kA, kY, kG, kZ}) b.free(s);
    return b.run(5).free(kU).build();
  });
  const Handle w = by_hand.scene.data(1, Category::kParameter);
  int step = 0, evicted = 0;
  by_hand.run([&] {
    Handle a = by_hand.call({w}, 1);
    Handle y = by_hand.call({a}, 2);
    Handle g = by_hand.call({w}, 3);
    Handle z = by_hand.call({g, y}, 4);
    if (step++ > 2) evicted += by_hand.scene.evict(z);  // as a policy may that needs space
    const Handle u = by_hand.call({z}, 5);
    a = y = g = z = {};
    return by_hand.scene.hash(u);
  });
  EXPECT_EQ(evicted, 0);
  by_hand.expect_followed();
}

}  // namespace
}  // namespace tidemark::testing
