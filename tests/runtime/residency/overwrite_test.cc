// Deferred calls that run in place: the first output takes the block of an input.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

// A call that reads `input` and makes an output of `size` units, deferred.
struct Deferred {
  Deferred(Scene& of, const Handle& input, int64_t size, int64_t workspace = 0)
      : scene(of),
        input_storage(input.ptr()),
        call(make_intrusive<ToyCall>(7)),
        output(of.session().residency().storages().create(units(size), Category::kGradient,
                                                          "toy")) {
    call->inputs.push_back({input.ptr(), input->version(), false});
    call->outputs.push_back({output.get(), output->bytes()});
    call->workspace = units(workspace);
    call->cost_key = of.session().costs().key(1, {100, Bytes(100), false});
    of.residency().defer(call);
  }
  bool run(bool in_place) {
    BlockPlacement placement{BlockPlacement::How::kCompact, {}};
    if (in_place) placement.overwrites = input_storage.get();
    return scene.residency().execute_deferred(call, placement);
  }

  Scene& scene;
  IntrusivePtr<Storage> input_storage;
  IntrusivePtr<ToyCall> call;
  Handle output;
};

// a, 2 units, above another storage of 1, in 9.
struct Stage {
  explicit Stage(int64_t workspace = 0)
      : scene(SceneOptions{.arena = 9}),
        below(scene.data(1)),
        deferred(scene, scene.call({}, 2), 2, workspace) {}
  Scene scene;
  Handle below;
  Deferred deferred;
};

TEST(Overwrite, TheOutputTakesTheInputsBlock) {
  Stage apart, over;
  EXPECT_TRUE(apart.deferred.run(false));
  const Offset at = over.deferred.input_storage->managed.block.offset;
  EXPECT_TRUE(over.deferred.run(true));
  EXPECT_EQ(over.deferred.output->managed.block.offset, at);
  EXPECT_EQ(over.deferred.input_storage->residence(), Residence::kDead);
  EXPECT_EQ(over.scene.used(), units(3));
  EXPECT_EQ(over.scene.hash(over.deferred.output), apart.scene.hash(apart.deferred.output));
  // Both can be made again, one from the other.
  EXPECT_TRUE(over.scene.evict(over.deferred.output));
  EXPECT_EQ(over.scene.hash(over.deferred.output), apart.scene.hash(apart.deferred.output));
}

TEST(Overwrite, CountsByCategory) {
  Stage stage;
  EXPECT_TRUE(stage.deferred.run(true));
  const CategoryBytes& live = stage.scene.session().arena().live();
  EXPECT_EQ(live[Category::kGradient], units(2));
  EXPECT_EQ(live[Category::kActivation], Bytes(0));
  stage.deferred.output = {};
  EXPECT_EQ(live.total(), units(1));
}

// A call that has no space for its workspace gives the block back, and may run later.
TEST(Overwrite, ACallThatFailsGivesTheBlockBack) {
  Stage apart, over(/*workspace=*/7);
  EXPECT_TRUE(apart.deferred.run(false));
  EXPECT_THROW(over.deferred.run(true), OutOfMemory);
  EXPECT_TRUE(over.deferred.input_storage->resident());
  EXPECT_EQ(over.deferred.output->residence(), Residence::kEmpty);
  EXPECT_EQ(over.scene.used(), units(3));
  over.deferred.call->workspace = Bytes(0);
  EXPECT_TRUE(over.deferred.run(true));
  EXPECT_EQ(over.scene.hash(over.deferred.output), apart.scene.hash(apart.deferred.output));
}

// Its input is then copied out as any other: once it has been written. Compute is still busy.
TEST(Overwrite, ACallThatFailsLeavesTheInputAsItWas) {
  const auto run = [](bool fails) {
    Scene scene({.arena = 9, .host = 32, .poison = false});
    const Handle seed = scene.data(2);
    scene.device().synchronize_all();
    const auto busy = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
    scene.device().enqueue(StreamId::kCompute, {busy, Nanos(1), 0});
    Deferred deferred(scene, scene.call({seed}, 2), 2, fails ? 8 : 0);
    if (fails) {
      EXPECT_THROW(deferred.run(true), OutOfMemory);
      deferred.call->workspace = Bytes(0);
    }
    EXPECT_TRUE(scene.residency().transfers().release_by(*deferred.input_storage,
                                                         Action::kOffload, Reason::kPlan));
    EXPECT_TRUE(deferred.run(false));
    return scene.hash(deferred.output);
  };
  EXPECT_EQ(run(true), run(false));
}

// Once w is written, x cannot be computed again, nor what overwrites x.
TEST(Overwrite, WhatLostItsRecipeIsNoSource) {
  Scene scene;
  const MemoryView& view = scene.residency().view();
  const Handle w = scene.data();
  Handle x = scene.call({w}, 2);
  EXPECT_TRUE(view.may_evict(*x));
  ASSERT_TRUE(scene.evict(x) && scene.residency().recompute(*x, {}));
  scene.update({w});
  Deferred deferred(scene, std::exchange(x, {}), 2);
  EXPECT_TRUE(deferred.run(true));
  EXPECT_FALSE(view.may_evict(*deferred.output));
}

TEST(Overwrite, IsSaidInTheLog) {
  Stage stage;
  EXPECT_TRUE(stage.deferred.run(true));
  EXPECT_EQ(stage.scene.events(EventKind::kOperator).back().reason, Reason::kInPlace);
}

// b was computed from x, which has no recipe, and is evicted.
TEST(Overwrite, TheOnlySourceOfSomethingEvictedStays) {
  Scene scene({.arena = 8});
  Handle x = scene.data(2);
  const Handle b = scene.call({x}, 2);
  const uint64_t expected = scene.hash(b);
  Deferred deferred(scene, x, 2);
  x = {};
  ASSERT_TRUE(scene.evict(b));
  EXPECT_TRUE(deferred.run(true));
  EXPECT_TRUE(deferred.input_storage->resident());
  EXPECT_EQ(scene.hash(b), expected);
}

// The program still has a handle.
TEST(Overwrite, WhatHasAUserStays) {
  Scene scene({.arena = 8});
  const Handle a = scene.call({}, 2);
  const uint64_t expected = scene.hash(a);
  Deferred deferred(scene, a, 2);
  EXPECT_TRUE(deferred.run(true));
  EXPECT_TRUE(resident(a));
  EXPECT_EQ(scene.hash(a), expected);
}

}  // namespace
}  // namespace tidemark::testing
