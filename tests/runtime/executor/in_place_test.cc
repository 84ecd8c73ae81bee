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

}  // namespace
}  // namespace tidemark::testing
