// Steps that carry storages over their end: one step makes them, a later one reads and releases
// them. Examples are gradients summed over two steps, and states that each step replaces.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/executor/initial_storages.h"
#include "runtime/executor/step_planner.h"
#include "runtime/residency/residency.h"
#include "tests/runtime/executor/toy_training.h"

namespace tidemark::testing {
namespace {

enum class Carries : uint8_t {
  kSums,         // steps 0 and 1 of three add to the gradients, step 2 updates with them
  kSumsInPlace,  // step 1 writes what step 0 has made
  kStates,       // each step computes its states from those of the step before
};
constexpr const char* kCarriesNames[] = {"sums", "sums_in_place", "states"};

class CarryingTraining {
 public:
  CarryingTraining(Carries carries, const SceneOptions& options)
      : carries_(carries), scene_(options), carried_(kLayers) {
    for (size_t k = 0; k < kLayers; ++k) weights_.push_back(data(Category::kParameter));
    for (size_t k = 0; k < kLayers && carries_ == Carries::kStates; ++k) {
      carried_[k] = data(Category::kData);
    }
  }

  // `between` is called in the middle of the step.
  StepStats step(const std::function<void()>& between = [] {}) {
    const bool updates = carries_ == Carries::kStates || steps_ % 3 == 2;
    const bool learns = carries_ == Carries::kStates || steps_ % 3 < 2;
    ++steps_;
    return scene_.session().step([&] {
      if (learns) learn(between);
      for (size_t k = 0; k < kLayers && updates; ++k) {
        if (!learns && k == 1) between();
        scene_.update({weights_[k], carried_[k]});
        if (!learns) carried_[k] = {};
      }
      read_.push_back(scene_.hash(weights_[0]));
    });
  }
  std::vector<uint64_t> finish() {
    for (const auto* handles : {&weights_, &carried_}) {
      for (const Handle& handle : *handles) {
        if (handle) read_.push_back(scene_.hash(handle));
      }
    }
    return read_;
  }
  Scene& scene() { return scene_; }
  Session& session() { return scene_.session(); }

 private:
  static constexpr size_t kLayers = 3;

  Handle data(Category category) { return scene_.data(4, category); }
  void learn(const std::function<void()>& between) {
    Handle x = scene_.data(2);
    std::vector<Handle> saved;
    for (const Handle& weight : weights_) {
      saved.push_back(x);
      x = scene_.call({x, weight}, 2, 1);
    }
    between();
    for (size_t k = kLayers; k-- > 0;) {
      Handle gradient = scene_.call({x, saved[k]}, 4);
      x = scene_.call({x, weights_[k]}, 2);
      saved.pop_back();
      add(carried_[k], std::move(gradient));
    }
    read_.push_back(scene_.hash(x));
  }
  void add(Handle& sum, Handle gradient) {
    if (!sum) {
      sum = std::move(gradient);
    } else if (carries_ == Carries::kSumsInPlace) {
      scene_.update({sum, gradient});
    } else {
      sum = scene_.call({sum, gradient}, 4);
    }
  }

  const Carries carries_;
  Scene scene_;
  std::vector<Handle> weights_, carried_;
  std::vector<uint64_t> read_;
  int steps_ = 0;
};

SceneOptions within(int64_t arena, bool search) {
  return {
      .arena = arena, .host = 200, .policy = search ? "tide" : "delta", .learn_costs = false};
}

void plan_steps(CarryingTraining& training, bool search,
                std::vector<std::string>* said = nullptr) {
  PlanOptions options = quiet(said);
  options.search = search;
  training.session().plan_steps(options);
}

std::vector<uint64_t> ample(Carries carries, int steps) {
  CarryingTraining training(carries, {.arena = 200});
  for (int i = 0; i < steps; ++i) training.step();
  return training.finish();
}

class Carried : public ::testing::TestWithParam<Carries> {};

TEST_P(Carried, StepsArePlannedAndKeepTheirBits) {
  constexpr int kSteps = 30;
  const auto expected = ample(GetParam(), kSteps);
  for (const bool search : {false, true}) {
    for (const int64_t arena : {26, 30, 34, 100}) {
      SCOPED_TRACE(std::string(search ? "a search, " : "the policy's releases, ") +
                   std::to_string(arena) + " units");
      CarryingTraining training(GetParam(), within(arena, search));
      plan_steps(training, search);
      int64_t released = 0;
      for (int i = 0; i < kSteps; ++i) {
        const StepStats stats = training.step();
        EXPECT_LE(stats.peak_reserved, units(arena));
        if (stats.planned) released += stats.evictions + stats.offloads + stats.clean_drops;
      }
      const PlanCounts& counts = training.session().planner()->counts();
      EXPECT_GE(counts.planned_steps, kSteps / 2);
      EXPECT_EQ(counts.mismatches, 0);
      EXPECT_EQ(released > 0, arena < 100) << "a step needs some 40 units";
      EXPECT_EQ(training.finish(), expected);
    }
  }
}

// One of three steps has an extra call; afterwards every step follows its plan again.
TEST_P(Carried, AStepThatDiffersLosesNothing) {
  constexpr int kSteps = 36;
  for (const bool search : {false, true}) {
    for (int differs = 24; differs < 27; ++differs) {
      SCOPED_TRACE(std::to_string(search) + ", step " + std::to_string(differs));
      const auto run = [&](CarryingTraining& training) {
        for (int i = 0; i < kSteps; ++i) {
          Handle extra;
          const StepStats stats = training.step([&] {
            if (i == differs) extra = training.scene().call({training.scene().data(1)});
          });
          if (training.session().planner() && i >= kSteps - 3) {
            EXPECT_TRUE(stats.planned) << i;
          }
        }
        return training.finish();
      };
      CarryingTraining plain(GetParam(), {.arena = 200});
      CarryingTraining training(GetParam(), within(search ? 100 : 26, search));
      plan_steps(training, search);
      EXPECT_EQ(run(training), run(plain));
      EXPECT_EQ(training.session().planner()->counts().mismatches, 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Carried,
                         ::testing::Values(Carries::kSums, Carries::kSumsInPlace,
                                           Carries::kStates),
                         [](const auto& tested) {
                           return std::string(kCarriesNames[static_cast<size_t>(tested.param)]);
                         });

// --- which storage has which number ---

using Numbers = std::vector<uint32_t>;
constexpr uint32_t kForeign = InitialStorages::kForeign;

// A step that reads `inputs`, recorded from the storages that the scene has in use at its
// beginning. They are numbered in that order.
InitialStorages recorded(Scene& scene, const std::vector<Handle>& inputs) {
  InitialStorages initial(scene.residency().storages().in_use());
  ToyCall call(1);
  for (const Handle& input : inputs) call.inputs.push_back({input.ptr(), 0, false});
  StepRecorder recorder;
  recorder.begin_step();
  recorder.call(call, /*signature=*/1, Nanos(1));
  const StepTrace trace = recorder.end_step();
  initial.number(trace, recorder);
  return initial;
}

// The numbers of the storages in use, the oldest first.
std::optional<Numbers> numbers(Scene& scene, const InitialStorages& initial) {
  auto found = initial.numbers(scene.residency().storages().in_use());
  if (found) std::reverse(found->begin(), found->end());
  return found;
}

TEST(InitialStorages, AreKnownByIdThenByKindAndAge) {
  Scene scene;
  const Handle w = scene.data(4, Category::kParameter), other = scene.data(3);
  Handle a = scene.call({w}, 2), b = scene.call({w}, 2), c = scene.call({w}, 1);
  const InitialStorages initial = recorded(scene, {b, w, c, a});
  EXPECT_EQ(initial.foreign(), (std::vector<Bytes>{units(3)}));
  EXPECT_EQ(numbers(scene, initial), (Numbers{1, kForeign, 3, 0, 2}));
  // New storages, made in another order except for those of the same kind.
  a = b = c = {};
  const Handle c2 = scene.call({w}, 1), a2 = scene.call({w}, 2), b2 = scene.call({w}, 2);
  EXPECT_EQ(numbers(scene, initial), (Numbers{1, kForeign, 2, 3, 0}));
}

// The step does not use the older of two storages of the same kind, so it comes later.
TEST(InitialStorages, ForeignOnesOfTheSameKindKeepTheirTurn) {
  Scene scene;
  const Handle w = scene.data(4, Category::kParameter);
  Handle loss = scene.call({w}, 1), state = scene.call({w}, 1);
  const InitialStorages initial = recorded(scene, {state});
  loss = state = {};
  loss = scene.call({w}, 1);
  EXPECT_EQ(numbers(scene, initial), std::nullopt) << "there is no second";
  state = scene.call({w}, 1);
  EXPECT_EQ(numbers(scene, initial), (Numbers{kForeign, kForeign, 0}));
}

TEST(InitialStorages, OfAnotherKindAreForeign) {
  Scene scene;
  const Handle w = scene.data(4, Category::kParameter);
  Handle a = scene.call({w}, 2);
  const InitialStorages initial = recorded(scene, {w, a});
  a = scene.data(2);
  EXPECT_EQ(numbers(scene, initial), std::nullopt);
  const Handle again = scene.call({w}, 2);
  EXPECT_EQ(numbers(scene, initial), (Numbers{0, kForeign, 1}));
}

TEST(InitialStorages, SayWhatHasComeUnseen) {
  Scene scene;
  InitialStorages initial(scene.residency().storages().in_use());
  const Handle late = scene.data();
  ToyCall call(1);
  call.inputs.push_back({late.ptr(), 0, false});
  StepRecorder recorder;
  recorder.begin_step();
  recorder.call(call, /*signature=*/1, Nanos(1));
  const StepTrace trace = recorder.end_step();
  initial.number(trace, recorder);
  EXPECT_NE(initial.why_not().find("no call of the step made it"), std::string::npos);
}

}  // namespace
}  // namespace tidemark::testing
