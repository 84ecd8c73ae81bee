// Steps of toy operators, recorded, planned and followed, on a device with data.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>

#include "runtime/executor/step_planner.h"
#include "runtime/residency/residency.h"
#include "runtime/schedule/fingerprint.h"
#include "tests/runtime/executor/toy_training.h"
#include "tests/support/random_program.h"
#include "tests/support/sanitized.h"

namespace tidemark::testing {
namespace {

std::vector<uint64_t> unplanned(
    int steps, const std::function<void(int)>& between = [](int) {}) {
  Training training;
  for (int i = 0; i < steps; ++i) training.step(between);
  return training.finish();
}

// `steps(scene, w)` runs steps and returns what it has read: the same with plans as without.
// `check`: of the counts with plans.
template <class Steps, class Check>
void expect_plans_keep_the_bits(const Steps& steps, const Check& check) {
  const auto run = [&](bool planned) {
    Scene scene;
    const Handle w = scene.data(4, Category::kParameter);
    if (planned) scene.session().plan_steps(quiet());
    const auto read = steps(scene, w);
    if (planned) check(scene.session().planner()->counts());
    return read;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Recorder, WritesDownTheStep) {
  Scene scene;
  const Handle w = scene.data(4, Category::kParameter);
  const StepTrace graph = scene.session().record_step([&] {
    Handle x = scene.data(2);
    Handle y = scene.call({x, w}, 3, 1);
    x = {};
    scene.update({w, y});
    scene.hash(y);
  });
  EXPECT_TRUE(trace_violations(graph).empty());
  ASSERT_EQ(graph.ops.size(), 4u);
  EXPECT_EQ(graph.ops[0].kind, StepTrace::Kind::kUpload);
  EXPECT_EQ(graph.ops[1].inputs, (std::vector<StepTrace::Input>{{0, 0, false}, {1, 0, false}}));
  EXPECT_EQ(graph.ops[1].outputs, std::vector<uint32_t>{2});
  EXPECT_EQ(graph.ops[1].released, std::vector<uint32_t>{0});
  EXPECT_EQ(graph.ops[1].workspace, units(1));
  EXPECT_EQ(graph.ops[2].inputs, (std::vector<StepTrace::Input>{{1, 0, true}, {2, 0, false}}));
  EXPECT_EQ(graph.ops[3].kind, StepTrace::Kind::kRead);
  EXPECT_EQ(graph.ops[3].released, std::vector<uint32_t>{2});
  ASSERT_EQ(graph.storages.size(), 3u);
  EXPECT_EQ(graph.storages[0].size, units(2));
  EXPECT_EQ(graph.storages[0].category, Category::kData);
  EXPECT_FALSE(graph.storages[0].at_start || graph.storages[0].at_end);
  EXPECT_TRUE(graph.storages[1].at_start && graph.storages[1].at_end);
}

TEST(Plans, SwitchAfterTwoEqualStepsAndKeepTheBits) {
  Training training;
  std::vector<std::string> said;
  training.session().plan_steps(quiet(&said));
  std::vector<bool> planned;
  for (int i = 0; i < 6; ++i) planned.push_back(training.step().planned);
  EXPECT_EQ(planned, (std::vector<bool>{false, false, true, true, true, true}));
  EXPECT_EQ(training.finish(), unplanned(6));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said.front().find("steps now follow a plan"), std::string::npos) << said.front();
}

// Fingerprints identify a plan and its inputs. With given costs they are the same every time,
// also on a busy machine.
TEST(Plans, AreToldByTheirFingerprints) {
  const auto report = [](double room) {
    SessionOptions options;
    options.device = "sim:a100-80gb";
    options.threads = 1;
    options.policy = "tide";
    options.budget = align_up(share_of(kRandomProgramSmallest, room));
    options.host_limit = Bytes(1 << 20);
    Session session(options);
    std::vector<std::string> said;
    session.plan_steps(quiet(&said));
    run_random_program(session, 8, 14, 24, /*alike=*/true);
    const BoundSchedule* bound = session.planner()->current();
    EXPECT_TRUE(bound);
    const std::string numbers = "; plan " + fingerprint_text(fingerprint(bound->schedule)) +
                                " made from " + fingerprint_text(bound->made_from);
    EXPECT_TRUE(std::any_of(said.begin(), said.end(), [&](const std::string& line) {
      return line.ends_with(numbers);
    })) << numbers;
    return std::pair(numbers, said);
  };
  const auto idle = report(1);
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i)
    others.emplace_back([&] {
      while (!stop) std::this_thread::yield();
    });
  const auto busy = report(1);
  stop = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(idle, busy);
  EXPECT_NE(report(1.2).first, idle.first);
}

// The order planner's work counts together with what the runtime examines.
// A schedule saved in one session is followed in another that ran other operators first.
TEST(Plans, AStepIsTheSameWhateverRanBefore) {
  Training first, second;
  first.session().plan_steps(quiet());
  for (int i = 0; i < 4; ++i) first.step();
  const BoundSchedule* saved = first.session().planner()->current();
  ASSERT_TRUE(saved);

  for (const int64_t size : {5, 6, 2}) second.scene().call({second.weights().front()}, size);
  PlanOptions given = quiet();
  given.producer = [&](const StepTrace& trace, const PlanLimits&, const std::vector<Bytes>&) {
    EXPECT_TRUE(same_program(saved->trace, trace));
    EXPECT_EQ(signature_of(saved->trace), signature_of(trace));
    return saved->schedule;
  };
  second.session().plan_steps(std::move(given));
  for (int i = 0; i < 4; ++i) second.step();
  EXPECT_EQ(second.session().planner()->counts().planned_steps, 2);
}

TEST(Plans, TheWorkOfAnOrderIsCounted) {
  const auto examined = [](bool plans) {
    Training training;
    if (plans) training.session().plan_steps(quiet());
    for (int i = 0; i < 2; ++i) training.step();
    return training.session().residency().effort().examined();
  };
  EXPECT_GT(examined(true), examined(false) + 100);
}

std::thread no_thread(const std::function<void()>&) {
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
}

TEST(Plans, WithoutAThreadStepsGoByThePolicy) {
  Training training;
  std::vector<std::string> said;
  PlanOptions options = quiet(&said);
  options.background = true;
  options.thread = no_thread;
  training.session().plan_steps(options);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(training.step().planned);
  EXPECT_EQ(training.finish(), unplanned(5));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said.front().find("no thread"), std::string::npos) << said.front();
}

// Training continues meanwhile, on as many threads as there are processors.
TEST(Plans, InTheBackgroundTrainingGoesFirst) {
  const auto nice = [] { return getpriority(PRIO_PROCESS, 0); };  // of this thread
  const int own = nice();
  for (const bool background : {false, true}) {
    Training training;
    std::optional<int> of_producer;
    PlanOptions options = quiet();
    options.background = background;
    options.producer = [&](const StepTrace&, const PlanLimits&, const std::vector<Bytes>&) {
      of_producer = nice();
      return std::optional<Schedule>();
    };
    training.session().plan_steps(options);
    for (int i = 0; i < 3; ++i) training.step();
    training.session().planner()->finish_planning();
    EXPECT_EQ(of_producer, background ? std::min(own + 10, 19) : own);
    EXPECT_EQ(nice(), own);
  }
}

TEST(Plans, WithoutAThreadAStepThatWaitsForItsPlanMakesItItself) {
  Training training;
  PlanOptions options = quiet();
  options.thread = no_thread;
  training.session().plan_steps(options);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(training.step().planned, i >= 2);
  EXPECT_EQ(training.finish(), unplanned(5));
}

TEST(Plans, ThePeakIsThePlansToTheByte) {
  Training plain;
  const Bytes before = plain.step().peak_reserved;
  Training training;
  training.session().plan_steps(quiet());
  StepStats stats;
  for (int i = 0; i < 4; ++i) stats = training.step();
  const BoundSchedule* plan = training.session().planner()->current();
  ASSERT_TRUE(plan);
  EXPECT_FALSE(in_program_order(plan->schedule)) << "updates should have moved forward";
  EXPECT_EQ(stats.peak_reserved, units(4 * Training::kLayers) + plan->schedule.peak);
  EXPECT_LT(stats.peak_reserved, before);
  EXPECT_EQ(stats.operators, 3 * Training::kLayers + Training::kLayers);
}

// Nobody uses x between the steps, but it stays, as y could be recomputed from it. The plan
// notices x when it takes its range.
TEST(Plans, LeaveRoomToWhatOnlyRecipesWant) {
  const auto run = [](bool plans) {
    Scene scene({.arena = 13});
    const Handle w = scene.data(4, Category::kParameter);
    std::vector<std::string> said;
    if (plans) scene.session().plan_steps(quiet(&said));
    Handle y;
    std::vector<uint64_t> read;
    for (int step = 0; step < 5; ++step) {
      scene.session().step([&] {
        Handle a = scene.call({w}, 4), b = scene.call({a}, 4);
        a = {};
        read.push_back(scene.hash(b));
      });
      if (step == 2) {
        const Handle x = scene.data(1);
        y = scene.call({x}, 1);
      }
    }
    read.push_back(scene.hash(y));
    return read;
  };
  EXPECT_EQ(run(true), run(false));
}

// The smallest arena in which the plan fits; dynamic steps have to release something there.
TEST(Plans, RunWithoutAReleaseInTheirPeak) {
  Training big;
  big.session().plan_steps(quiet());
  for (int i = 0; i < 4; ++i) big.step();
  const Bytes peak =
      units(4 * Training::kLayers) + big.session().planner()->current()->schedule.peak;
  Training training({.arena = peak.count() / kAlignment.count(), .host = 64});
  training.session().plan_steps(quiet());
  StepStats first = training.step(), last;
  for (int i = 0; i < 5; ++i) last = training.step();
  EXPECT_GT(first.evictions + first.offloads, 0);
  EXPECT_TRUE(last.planned);
  EXPECT_EQ(last.evictions + last.offloads + last.reloads + last.recomputes, 0);
  EXPECT_EQ(last.peak_reserved, peak);
  EXPECT_EQ(training.finish(), unplanned(6));
}

// The fourth step has an extra call, at either place.
TEST(Plans, AStepThatDiffersIsFinishedAndNothingIsLost) {
  for (const int place : {0, 1}) {
    Training plain, training;
    training.session().plan_steps(quiet());
    EXPECT_EQ(training.run_with_an_odd_step(8, 3, place),
              plain.run_with_an_odd_step(8, 3, place));
    EXPECT_EQ(training.session().planner()->counts().mismatches, 1);
    EXPECT_EQ(training.session().planner()->counts().plans, 1);
    // Steps 2, 5, 6 and 7 are planned; 3 differs, and 4 is recorded.
    EXPECT_EQ(training.session().planner()->counts().planned_steps, 4);
  }
}

TEST(Plans, AMismatchSaysHowACallOfTheSameNameDiffers) {
  using Odd = std::function<Handle(Scene&, const Handle& x, const Handle& w)>;
  const auto said_of = [](const Odd& odd) {
    Scene scene;
    const Handle w = scene.data(4, Category::kParameter);
    std::vector<std::string> said{""};
    scene.session().plan_steps(quiet(&said));
    for (int i = 0; i < 4; ++i) {
      scene.session().step([&] {
        const Handle x = scene.call({w}, 2);
        scene.update({w, i == 3 ? odd(scene, x, w) : scene.call({x, w}, 2)});
      });
    }
    return said.back();
  };
  const std::vector<std::pair<Odd, std::string>> cases{
      {[](Scene& scene, const Handle& x, const Handle&) { return scene.call({x}, 2); },
       "its number of inputs is 1 instead of 2"},
      {[](Scene& scene, const Handle& x, const Handle& w) {
         return scene.calls({x, w}, {2, 1}).front();
       },
       "its number of outputs is 2 instead of 1"},
      {[](Scene& scene, const Handle& x, const Handle& w) {
         return scene.call({w, x}, 2);
       },
       "an input takes 2.0 KiB instead of 1.0 KiB"},
      {[](Scene& scene, const Handle& x, const Handle& w) {
         return scene.call({x, w}, 3);
       },
       "an output takes 1.5 KiB instead of 1.0 KiB"},
      {[](Scene& scene, const Handle& x, const Handle& w) {
         return scene.call({x, w}, 2, 1);
       },
       "its workspace takes 512 B instead of 0 B"},
  };
  for (const auto& [odd, text] : cases) {
    EXPECT_TRUE(said_of(odd).ends_with(
        "operator 1: [toy] is not the planned call of this name: " + text))
        << said_of(odd);
  }
}

TEST(Plans, AStepThatEndsEarlyIsFinished) {
  expect_plans_keep_the_bits(
      [](Scene& scene, const Handle& w) {
        for (int i = 0; i < 6; ++i) {
          scene.session().step([&] {
            Handle x = scene.call({w}, 2);
            Handle y = scene.call({x}, 2);
            scene.update({w, y});
            if (i != 4) scene.update({w, x});
          });
        }
        return scene.hash(w);
      },
      [](const PlanCounts& counts) { EXPECT_EQ(counts.mismatches, 1); });
}

// The calls are the same, but a handle lives on whose place the plan gives to another storage.
TEST(Plans, WhatTheProgramStillHoldsIsNotWrittenOver) {
  expect_plans_keep_the_bits(
      [](Scene& scene, const Handle& w) {
        std::vector<uint64_t> read;
        for (int i = 0; i < 6; ++i) {
          Handle held;
          scene.session().step([&] {
            Handle x = scene.call({w}, 2);
            Handle y = scene.call({x}, 2);
            if (i == 4) held = x;
            x = {};
            Handle z = scene.call({y}, 2);
            y = {};
            scene.update({w, z});
          });
          if (held) read.push_back(scene.hash(held));
        }
        read.push_back(scene.hash(w));
        return read;
      },
      [](const PlanCounts& counts) {
        EXPECT_EQ(counts.mismatches, 1);
        EXPECT_EQ(counts.planned_steps, 2);
      });
}

// A step of a program with this batch size.
void train_on(Scene& scene, const Handle& w, int64_t batch) {
  Handle x = scene.data(batch);
  Handle y = scene.call({x, w}, 2 * batch);
  Handle z = scene.call({y, x}, batch);
  scene.update({w, z});
}

// Each program has a plan of its own, chosen by its first upload.
TEST(Plans, TwoProgramsInTurn) {
  expect_plans_keep_the_bits(
      [](Scene& scene, const Handle& w) {
        for (const int64_t batch : {4, 4, 4, 2, 2, 2, 4, 2, 4}) {
          scene.session().step([&] { train_on(scene, w, batch); });
        }
        return scene.hash(w);
      },
      [](const PlanCounts& counts) {
        EXPECT_EQ(counts.plans, 2);
        EXPECT_EQ(counts.planned_steps, 5);
        EXPECT_EQ(counts.mismatches, 0);
      });
}

// The last batch of an epoch never comes twice in a row, except between steps that follow a
// plan.
TEST(Plans, AProgramThatComesNowAndThen) {
  Scene scene;
  const Handle w = scene.data(4, Category::kParameter);
  scene.session().plan_steps(quiet());
  std::vector<bool> planned;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (const int64_t batch : {4, 4, 2}) {
      planned.push_back(scene.session().step([&] { train_on(scene, w, batch); }).planned);
    }
  }
  EXPECT_EQ(planned, (std::vector<bool>{false, false, false, true, true, false, true, true,
                                        true, true, true, true, true, true, true}));
}

// Forward only: nothing is saved and nothing is updated.
TEST(Plans, InferenceIsCapturedAndPlanned) {
  expect_plans_keep_the_bits(
      [](Scene& scene, const Handle& w) {
        const Handle v = scene.data(4, Category::kParameter);
        std::vector<uint64_t> read;
        for (int i = 0; i < 5; ++i) {
          scene.session().step([&] {
            Handle x = scene.data(2);
            Handle left = scene.call({x, v}, 6, 1);
            Handle right = scene.call({x, w}, 6, 1);
            x = scene.call({left, right}, 1);
            left = right = {};
            read.push_back(scene.hash(x));
          });
        }
        return read;
      },
      [](const PlanCounts& counts) { EXPECT_EQ(counts.planned_steps, 3); });
}

TEST(Plans, AReadInTheMiddleSeesWhatWasIssued) {
  expect_plans_keep_the_bits(
      [](Scene& scene, const Handle& w) {
        std::vector<uint64_t> read;
        for (int i = 0; i < 5; ++i) {
          scene.session().step([&] {
            Handle x = scene.call({w}, 2);
            Handle y = scene.call({x}, 6);
            read.push_back(scene.hash(x));
            Handle z = scene.call({x, y}, 2);
            y = {};
            scene.update({w, z});
            read.push_back(scene.hash(w));
          });
        }
        return read;
      },
      [](const PlanCounts& counts) { EXPECT_EQ(counts.planned_steps, 3); });
}

TEST(Plans, AStepThatThrowsLeavesTheSessionUsable) {
  Training training;
  training.session().plan_steps(quiet());
  for (int i = 0; i < 3; ++i) training.step();
  EXPECT_THROW(training.step([](int at) {
    if (at == 1) throw std::runtime_error("stop");
  }),
               std::runtime_error);
  EXPECT_TRUE(training.step().planned);
  // The dynamic run throws at the same point.
  Training plain;
  for (int i = 0; i < 3; ++i) plain.step();
  EXPECT_THROW(plain.step([](int at) {
    if (at == 1) throw std::runtime_error("stop");
  }),
               std::runtime_error);
  plain.step();
  EXPECT_EQ(training.finish(), plain.finish());
}

// A loss is read after its step: the previous step's loss is foreign to this step.
TEST(Plans, WhatIsHeldOverTheEndIsPlannedToo) {
  const auto run = [](bool plans) {
    Scene scene;
    const Handle w = scene.data(4, Category::kParameter);
    if (plans) scene.session().plan_steps(quiet());
    std::vector<uint64_t> read;
    std::vector<bool> planned;
    Handle held;
    for (int i = 0; i < 6; ++i) {
      planned.push_back(scene.session()
                            .step([&] {
                              held = scene.call({w}, 2);
                              scene.update({w, held});
                            })
                            .planned);
      read.push_back(scene.hash(held));
    }
    if (plans) {
      EXPECT_EQ(planned, (std::vector<bool>{false, false, false, true, true, true}));
    }
    return read;
  };
  EXPECT_EQ(run(true), run(false));
}

// A storage from an earlier step that ends in this one is no resident. Such a step is planned
// with releases, even where it fits.
TEST(Plans, WhatGoesInALaterStepIsPlannedWithReleases) {
  Scene scene;
  const Handle w = scene.data(4, Category::kParameter);
  std::vector<std::string> said;
  scene.session().plan_steps(quiet(&said));
  Handle held = scene.call({w}, 2);
  std::vector<bool> planned;
  for (int i = 0; i < 6; ++i) {
    planned.push_back(scene.session().step([&] { held = scene.call({w, held}, 2); }).planned);
  }
  EXPECT_EQ(planned, (std::vector<bool>{false, false, false, true, true, true}));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said.front().find("releases taken from the policy"), std::string::npos)
      << said.front();
}

// Random programs of identical steps with views, in-place writes, reads and dropped handles, in
// ample memory and in exactly what the plan takes.
TEST(Plans, RandomProgramsKeepTheirBits) {
  int64_t planned = 0;
  for (uint32_t seed = 1; seed <= cases(40u); ++seed) {
    const auto run = [&](Bytes budget, bool plans) {
      SessionOptions options;
      options.threads = 1;
      options.budget = budget;
      options.host_limit = Bytes(64 << 20);
      options.residency.poison = true;
      Session session(options, make_cpu_device({.threads = 1}));
      if (plans) session.plan_steps(quiet());
      auto read = run_random_program(session, seed, 8, 30, /*alike=*/true);
      if (plans) planned += session.planner()->counts().planned_steps;
      return read;
    };
    const auto expected = run(Bytes(64 << 20), false);
    ASSERT_EQ(run(Bytes(64 << 20), true), expected) << seed;
    ASSERT_EQ(run(4 * kRandomProgramSmallest, true), expected) << seed;
  }
  EXPECT_GT(planned, cases(40));
}

}  // namespace
}  // namespace tidemark::testing
