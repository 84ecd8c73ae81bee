// Operators that run in place under a plan: they take no space, and change no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/executor/step_planner.h"
#include "tests/runtime/executor/toy_training.h"

namespace tidemark::testing {
namespace {

// A chain of calls, of which each one's input is dropped at once, except for the first.
//
//   x -> a -> b -> c -> d, and d is read beside a
std::vector<uint64_t> run_chain(Scene& scene, int steps,
                                std::vector<StepStats>* stats = nullptr,
                                Handle* kept = nullptr) {
  std::vector<uint64_t> read;
  for (int i = 0; i < steps; ++i) {
    const StepStats step = scene.session().step([&] {
      const Handle a = scene.call({scene.data(4)}, 4);
      Handle b = scene.call({a}, 4);
      if (kept && i + 1 == steps) *kept = b;
      Handle c = scene.call({b}, 4, 1);
      b = {};
      Handle d = scene.call({c}, 4);
      c = {};
      read.push_back(scene.hash(scene.call({d, a}, 4)));
    });
    if (stats) stats->push_back(step);
  }
  return read;
}

TEST(InPlacePlan, TakesNoSpaceAndKeepsTheBits) {
  Scene plain;
  const std::vector<uint64_t> expected = run_chain(plain, 5);
  Scene scene;
  std::vector<std::string> said;
  scene.session().plan_steps(quiet(&said));
  std::vector<StepStats> stats;
  EXPECT_EQ(run_chain(scene, 5, &stats), expected);
  ASSERT_TRUE(stats.back().planned) << said.back();
  EXPECT_EQ(stats.front().peak_live, units(17))
      << "at c's call: a, b, c, a workspace, and x, which recipes may need";
  EXPECT_EQ(stats.back().peak_live, units(12)) << "at the last call: a, d, the result";
}

// The step that keeps b leaves the plan before anything lies over b.
TEST(InPlacePlan, NothingIsOverwrittenThatTheProgramKeeps) {
  Scene plain;
  Handle plain_b;
  const std::vector<uint64_t> expected = run_chain(plain, 5, nullptr, &plain_b);
  Scene scene;
  std::vector<std::string> said;
  scene.session().plan_steps(quiet(&said));
  Handle b;
  std::vector<StepStats> stats;
  EXPECT_EQ(run_chain(scene, 5, &stats, &b), expected);
  EXPECT_TRUE(stats[3].planned);
  EXPECT_EQ(scene.hash(b), plain.hash(plain_b));
}

// A call that looks the same but may not overwrite its input, such as one on a view, is
// another.
TEST(InPlacePlan, IsLeftWhereACallMayNotOverwriteTheSame) {
  Scene scene;
  std::vector<std::string> said;
  scene.session().plan_steps(quiet(&said));
  const auto step = [&](bool may) {
    return scene.session().step([&] {
      Handle a = scene.call({}, 4);
      auto call = make_intrusive<ToyCall>(7);
      Handle b(scene.residency().storages().create(units(4), Category::kActivation, "toy"));
      call->inputs.push_back({a.ptr(), a->version(), false});
      call->outputs.push_back({b.get(), b->bytes()});
      call->may_overwrite = may ? 1 : 0;
      call->cost_key = scene.session().costs().key(1, {100, Bytes(100), false});
      scene.session().execute(call);
      a = {};
      scene.hash(b);
    });
  };
  for (int i = 0; i < 3; ++i) step(true);
  ASSERT_TRUE(step(true).planned) << said.back();
  EXPECT_EQ(scene.events(EventKind::kOperator).back().reason, Reason::kInPlace);
  step(false);
  EXPECT_EQ(scene.events(EventKind::kOperator).back().reason, Reason::kNone);
  EXPECT_NE(said.back().find("it may run in place on other inputs"), std::string::npos)
      << said.back();
}

}  // namespace
}  // namespace tidemark::testing
