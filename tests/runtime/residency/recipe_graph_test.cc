// Questions about the graph of recipes, as a policy asks them.
#include "runtime/residency/recipe_graph.h"

#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

constexpr Nanos kAny{1'000'000'000'000};

// The cost of a toy call. All cost the same, as nothing is learnt of them before the step's
// end.
Nanos cost_of_one(Scene& scene, const Handle& handle) {
  return *scene.residency().view().recompute_cost(*handle, kAny);
}

//   x -> a -> b -> c
TEST(RecipeGraph, CountsAncestorsThatAreNotHere) {
  Scene scene;
  const MemoryView& view = scene.residency().view();
  const Handle x = scene.data();
  const Handle a = scene.call({x}), b = scene.call({a}), c = scene.call({b});
  const Nanos one = cost_of_one(scene, c);
  EXPECT_GT(one, Nanos(0));
  ASSERT_TRUE(scene.evict(a) && scene.evict(b));
  EXPECT_EQ(view.recompute_cost(*c, kAny), 3 * one);
  EXPECT_GE(view.recompute_cost(*c, Nanos(0)), one)
      << "it stops counting, above what was asked";
  EXPECT_LT(view.recompute_cost(*c, Nanos(0)), 3 * one);
  scene.hash(b);
  EXPECT_EQ(view.recompute_cost(*c, kAny), one) << "b is here";
}

//        a
//   x <    > d     x's reader is counted once for both
//        b
TEST(RecipeGraph, CountsASharedAncestorOnce) {
  Scene scene;
  const Handle x = scene.data();
  const Handle s = scene.call({x});
  const Handle a = scene.call({s}), b = scene.call({s}), d = scene.call({a, b});
  const Nanos one = cost_of_one(scene, a);
  ASSERT_TRUE(scene.evict(a) && scene.evict(b) && scene.evict(s));
  EXPECT_EQ(scene.residency().view().recompute_cost(*d, kAny), 4 * one);
}

TEST(RecipeGraph, CountsWhatIsOnATierAtItsReload) {
  Scene scene({.host = 64});
  const MemoryView& view = scene.residency().view();
  const Handle x = scene.data();
  const Handle a = scene.call({x}), b = scene.call({a});
  const Nanos one = cost_of_one(scene, b);
  ASSERT_TRUE(scene.offload(a));
  EXPECT_EQ(view.recompute_cost(*b, kAny), one + view.reload_cost(*a));
}

// Once a source is written, storages made from it cannot be recomputed.
TEST(RecipeGraph, KnowsWhatCannotBeHadAgain) {
  Scene scene;
  const MemoryView& view = scene.residency().view();
  const Handle x = scene.data();
  const Handle a = scene.call({x}), b = scene.call({a});
  EXPECT_FALSE(view.may_evict(*x)) << "it was uploaded";
  EXPECT_TRUE(view.may_evict(*a));
  scene.update({x});
  EXPECT_FALSE(view.may_evict(*a));
  EXPECT_EQ(view.recompute_cost(*a, kAny), std::nullopt);
  EXPECT_TRUE(view.may_evict(*b)) << "a is here";
}

}  // namespace
}  // namespace tidemark::testing
