// The policies by name: what each one releases, and what it never does.
#include "runtime/policy/registry.h"

#include <gtest/gtest.h>

#include <memory>

#include "runtime/core/errors.h"
#include "runtime/policy/forecast.h"
#include "runtime/residency/residency.h"
#include "tests/runtime/policy/stage.h"
#include "tests/support/random_program.h"

namespace tidemark::testing {
namespace {

using namespace tidemark::literals;

TEST(Policies, AreFoundByName) {
  for (const PolicyInfo& policy : policies()) {
    EXPECT_EQ(find_policy(policy.name).name, policy.name);
    EXPECT_FALSE(policy.about.empty()) << policy.name;
    EXPECT_NE(policy.make({}), nullptr) << policy.name;
  }
}

TEST(Policies, AnUnknownOneIsRefusedWithTheNames) {
  try {
    find_policy("fifo");
    FAIL();
  } catch (const UsageError& error) {
    std::string names = "none";
    for (const PolicyInfo& policy : policies()) names += ", " + std::string(policy.name);
    EXPECT_EQ(error.what(), "unknown policy 'fifo'; available: " + names);
  }
  EXPECT_THROW(Stage("fifo", 8, 0), UsageError);
}

// A random program in the smallest budget that it completes in.
struct Trace {
  explicit Trace(const std::string& policy, Bytes host, uint64_t seed = 0,
                 Bytes budget = kRandomProgramSmallest, const std::string& unplanned = "price",
                 const std::string& filter = "") {
    SessionOptions options;
    options.delta.filter = filter;
    options.budget = budget;
    options.host_limit = host;
    options.policy = policy;
    options.fallback_policy = unplanned;
    options.seed = seed;
    Session session(options, make_sim_device(round_prices()));
    try {
      run_random_program(session, 3, 3, 80);
    } catch (const OutOfMemory&) {
      out_of_memory = true;
    }
    events = session.events().events();
  }
  int64_t count(EventKind kind, bool but_austere = false) const {
    return std::count_if(events.begin(), events.end(), [&](const EventRecord& event) {
      return event.kind == kind && !(but_austere && event.reason == Reason::kAustere);
    });
  }
  // Releases, in order.
  std::vector<std::pair<EventKind, uint32_t>> releases() const {
    std::vector<std::pair<EventKind, uint32_t>> found;
    for (const EventRecord& event : events) {
      if (event.kind == EventKind::kEvict || event.kind == EventKind::kOffload) {
        found.emplace_back(event.kind, event.storage);
      }
    }
    return found;
  }
  std::vector<EventRecord> events;
  bool out_of_memory = false;
};

class EvictOnly : public ::testing::TestWithParam<const char*> {};

TEST_P(EvictOnly, OffloadsOnlyByTheAustereSchedule) {
  const Trace run(GetParam(), 64_MiB);
  EXPECT_FALSE(run.out_of_memory);
  EXPECT_GT(run.count(EventKind::kEvict, /*but_austere=*/true), 0);
  EXPECT_EQ(run.count(EventKind::kOffload, /*but_austere=*/true), 0);
  EXPECT_EQ(run.count(EventKind::kCopyOut), 0);
  EXPECT_EQ(run.count(EventKind::kPrefetch), 0);
  // x can only be offloaded.
  Stage stage(GetParam(), 3, 64);
  const Handle x = stage.data(2);
  stage.call({}, 2);
  EXPECT_EQ(stage.letters({x}, {EventKind::kOffload}), "a");
  EXPECT_FALSE(stage.release(stage.data()));
  EXPECT_EQ(stage.stats().last_resorts, 1);
}

INSTANTIATE_TEST_SUITE_P(Policies, EvictOnly,
                         ::testing::Values("dtr", "lru", "greedy", "checkpoint"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(OffloadOnly, RecomputesNothing) {
  const Trace run("offload-only", 64_MiB);
  EXPECT_FALSE(run.out_of_memory);
  EXPECT_GT(run.count(EventKind::kOffload), 0);
  EXPECT_EQ(run.count(EventKind::kEvict), 0);
  EXPECT_EQ(run.count(EventKind::kRecompute), 0);
}

TEST(Austere, LeavesAllToTheLastResort) {
  for (const Bytes host : {Bytes(0), 64_MiB}) {
    const Trace run("austere", host);
    EXPECT_GT(run.count(EventKind::kEvict) + run.count(EventKind::kOffload), 0);
    EXPECT_EQ(run.count(EventKind::kEvict, /*but_austere=*/true), 0);
    EXPECT_EQ(run.count(EventKind::kOffload, /*but_austere=*/true), 0);
  }
}

// To compute a gradient again takes all of backward before it.
TEST(Austere, EvictsGradientsAfterAllElse) {
  Stage stage("austere", 3, 0);
  const Handle x = stage.data();
  const Handle a = stage.call({x}, 1, 1, Category::kGradient);
  const Handle b = stage.call({x});
  const Handle c = stage.call({x});
  EXPECT_EQ(stage.released({a, b, c}), "b");
  const Handle d = stage.call({x}, 2);
  EXPECT_EQ(stage.released({a, b, c, d}), "bca");
}

// No two steps of the program are alike, so none is planned.
TEST(Tide, GoesByAnotherPolicyWhereItHasNoSchedule) {
  for (const PolicyInfo& policy : policies()) {
    const std::string name(policy.name);
    const bool own = name == "price";
    if (!policy.evicts || (policy.plans && !own)) continue;
    const Trace tide("tide", 64_MiB, 0, kRandomProgramSmallest, name);
    EXPECT_EQ(tide.releases(), Trace(name, 64_MiB).releases()) << name;
    EXPECT_FALSE(tide.releases().empty());
  }
  EXPECT_THROW(Trace("tide", 64_MiB, 0, kRandomProgramSmallest, "tide"), UsageError);
  EXPECT_THROW(Trace("tide", 64_MiB, 0, kRandomProgramSmallest, "offload-only"), UsageError);
}

TEST(Random, IsRepeatableByItsSeed) {
  const Trace one("random", 64_MiB, 1), same("random", 64_MiB, 1), other("random", 64_MiB, 2);
  EXPECT_EQ(one.releases(), same.releases());
  EXPECT_NE(one.releases(), other.releases());
  EXPECT_GT(one.count(EventKind::kEvict), 0);
  EXPECT_GT(one.count(EventKind::kOffload), 0);
}

TEST(EveryPolicy, DoesTheSameAgain) {
  for (const PolicyInfo& policy : policies()) {
    const std::string name(policy.name);
    EXPECT_EQ(Trace(name, 64_MiB).releases(), Trace(name, 64_MiB).releases()) << name;
  }
}

TEST(EveryPolicy, ReleasesByAFilterIfItTakesOne) {
  for (const PolicyInfo& policy : policies()) {
    const auto releases = [&](const char* filter) {
      return Trace(std::string(policy.name), 64_MiB, 0, kRandomProgramSmallest, "price", filter)
          .releases();
    };
    EXPECT_EQ(releases("lru") != releases("greedy"), policy.takes_filter) << policy.name;
    if (policy.takes_filter) {
      EXPECT_NO_THROW(check_takes_filter(policy.name));
    } else {
      EXPECT_THROW(check_takes_filter(policy.name), UsageError);
    }
  }
  EXPECT_THROW(check_takes_filter("none"), UsageError);
}

TEST(EveryPolicy, ReleasesNothingWhereEverythingFits) {
  for (const PolicyInfo& policy : policies()) {
    const Trace run(std::string(policy.name), 64_MiB, 0, 64_MiB);
    EXPECT_TRUE(run.releases().empty()) << policy.name;
  }
}

std::string order(const std::string& policy, int64_t host = 0) {
  SCOPED_TRACE(policy);
  Stage stage(policy, 12, host);
  return release_order(stage);
}

TEST(Lru, TakesTheStalest) { EXPECT_EQ(order("lru"), "bca"); }

TEST(Greedy, TakesTheLargest) { EXPECT_EQ(order("greedy"), "acb"); }

// c / (m s): a 1/8, b 1/7, c 1/12.
TEST(Dtr, WeighsBytesAndStaleness) { EXPECT_EQ(order("dtr"), "cab"); }

// Fills an arena whose last unit is then needed, and returns which of `handles` goes.
std::string first_released(Stage& stage, const std::vector<Handle>& handles, int64_t units) {
  stage.call({}, units);
  const std::string text = stage.released(handles);
  return text;
}

TEST(Dtr, WeighsTheCost) {
  Stage stage("dtr", 3, 0);
  const Handle a = stage.call({}, 1, 3000), b = stage.call({}, 1, 100);
  const Handle c = stage.call({}, 1, 2000);
  EXPECT_EQ(first_released(stage, {a, b, c}, 1), "b");
}

// b was made from a, which is evicted: recomputing b takes 1000 + 100. c takes 500.
TEST(Dtr, CountsTheEvictedNeighbourhood) {
  for (const bool a_is_back : {false, true}) {
    Stage stage("dtr", 4, 0);
    const Handle a = stage.call({}, 1, 1000);
    const Handle b = stage.call({a}, 1, 100);
    const Handle c = stage.call({}, 1, 500);
    ASSERT_TRUE(stage.release(a));
    if (a_is_back) stage.call({a}, 1, 1);  // dropped at once
    // All are used at about the same time.
    stage.call({b, c}, 1, 100'000);
    const Handle last = stage.call({}, a_is_back ? 1 : 2, 1'000'000);
    stage.call({}, 1);
    const std::string gone = stage.released({a, b, c});
    if (a_is_back) {
      EXPECT_EQ(gone.substr(0, 2), "ab") << "a is here: b takes 100";
    } else {
      EXPECT_EQ(gone, "ac");
    }
  }
}

// A storage that is back costs nothing any more, although its component is not split: c takes
// 10 + 1000 with b, which is still away.
TEST(Dtr, TakesTheCostOfWhatIsBackOffItsComponent) {
  Stage stage("dtr", 6, 0);
  const Handle a = stage.call({}, 1, 1000), b = stage.call({a}, 1, 1000);
  const Handle c = stage.call({b}, 1, 10), z = stage.call({}, 1, 1500);
  ASSERT_TRUE(stage.release(b) && stage.release(a));
  stage.call({a, c, z}, 1, 100'000);
  stage.call({}, 6, 1'000'000);
  EXPECT_EQ(stage.released({a, b, c, z}), "bacda") << "c 1010, z 1500, a 2010";
}

// e* continues through evicted storages: d - c - b - a, of which a, b and c are evicted. It
// also counts storages that would need d again: x, evicted, was made from y.
TEST(Dtr, CountsTheWholeComponentInBothDirections) {
  Stage stage("dtr", 8, 0);
  const Handle a = stage.call({}, 1, 1000), b = stage.call({a}, 1, 1000);
  const Handle c = stage.call({b}, 1, 1000), d = stage.call({c}, 1, 10);
  const Handle y = stage.call({}, 1, 10), x = stage.call({y}, 1, 2000);
  const Handle z = stage.call({}, 1, 2500);
  for (const Handle& handle : {b, a, c, x}) ASSERT_TRUE(stage.release(handle));
  stage.call({d, y, z}, 1, 100'000);
  stage.call({}, 8, 1'000'000);
  EXPECT_EQ(stage.released({d, y, z}), "bca") << "10 + 2000, 2500, 10 + 3000";
}

// Steps in which a (expensive, used last) and b (cheap) are made in 4 units, in the order of
// `made`, and a unit for a moment. Then 3 units are needed for a moment; then b is used and,
// after a pause, a.
//   | b | a | . |   |
struct Gone {
  std::string evicted, offloaded, reloaded, prefetched, copied;
  Nanos step{0};
};

Gone steps_of_capuchin(int64_t host, const std::string& made, int steps) {
  Stage stage("msps", 4, host, {}, {.learn_costs = false});
  std::vector<Handle> handles;
  StepStats last;
  for (int i = 0; i < steps; ++i) {
    handles.assign(2, {});
    last = stage.session().step([&] {
      for (const char name : made) {
        handles[name == 'b'] = stage.call({}, 1, name == 'b' ? 100 : 400);
      }
      stage.call({}, 1, 200);
      stage.call({}, 3, 1000);
      stage.call({handles[1]}, 1, 10);
      stage.call({}, 1, 3000);
      stage.call({handles[0]}, 1, 10);
    });
    EXPECT_EQ(stage.stats().last_resorts, 0);
  }
  return {stage.letters(handles, {EventKind::kEvict}),
          stage.letters(handles, {EventKind::kOffload}),
          stage.letters(handles, {EventKind::kReload}),
          stage.prefetched(handles),
          stage.letters(handles, {EventKind::kCopyOut}),
          last.duration};
}

// Measured execution: on demand, the storage accessed longest ago.
TEST(Capuchin, SwapsOnDemandInTheMeasuredStep) {
  const Gone gone = steps_of_capuchin(64, "ab", 1);
  EXPECT_EQ(gone.offloaded, "ab") << "a alone leaves no hole of 3";
  EXPECT_EQ(gone.reloaded, "ba");
  EXPECT_EQ(gone.evicted + gone.prefetched, "");
}

// Guided execution. Out and back takes 90 each. a has more time to spare than b. Its copy
// begins right after it is made, and it is back before its use: nothing waits.
TEST(Capuchin, ThenSwapsByPlanWhatTheLinkHides) {
  for (const int steps : {2, 3, 5}) {
    const Gone gone = steps_of_capuchin(64, "ba", steps);
    EXPECT_EQ(gone.copied, "a");
    EXPECT_EQ(gone.prefetched, "a");
    EXPECT_EQ(gone.evicted + gone.offloaded + gone.reloaded, "");
    EXPECT_EQ(gone.step.count(), 100 + 400 + 200 + 1000 + 3000 + 10 + 10);
  }
}

TEST(Capuchin, RecomputesByMspsWithoutATier) {
  const Gone gone = steps_of_capuchin(0, "ab", 2);
  EXPECT_EQ(gone.offloaded, "");
  EXPECT_EQ(gone.evicted, "b") << "1/100 is more than 1/400";
}

TEST(Capuchin, NeverPlansAStepThatIsNotKnown) {
  Stage stage("msps", 3, 64);
  for (int i = 0; i < 4; ++i) {
    stage.session().step([&] {
      const Handle a = stage.call({}, 1 + i % 2, 100 + i);
      stage.call({}, 2, 1000);
      stage.call({a}, 1, 10);
    });
    for (const EventRecord& event : stage.step_events()) {
      EXPECT_NE(event.reason, Reason::kEarlyStart);
    }
  }
}

// As many programs as the forecast keeps need no plan. One more of as many calls takes the
// number of the first, but not its plan.
TEST(Capuchin, PlansForEachProgramItsOwn) {
  Stage stage("msps", 4, 64, {}, {.learn_costs = false});
  const auto last = static_cast<int64_t>(Forecast::kMaxPrograms);
  for (int64_t program = 0; program <= last; ++program) {
    std::vector<Handle> handles;
    for (int i = 0; i < 2; ++i) {
      handles.assign(2, {});
      stage.session().step([&] {
        handles[1] = stage.call({}, 1, 100 + program);
        handles[0] = stage.call({}, 1, 400);
        stage.call({}, 1, 200);
        stage.call({}, program < last ? 1 : 3, 1000);
        stage.call({handles[1]}, 1, 10);
        stage.call({}, 1, 3000);
        stage.call({handles[0]}, 1, 10);
      });
    }
    EXPECT_EQ(stage.letters(handles, {EventKind::kCopyOut}), program < last ? "" : "a");
  }
}

// The second step is the first one by the plan, which is made in it.
TEST(Capuchin, CountsTheWorkOfItsPlan) {
  Stage stage("msps", 4, 64, {}, {.learn_costs = false});
  std::vector<int64_t> examined;
  for (int i = 0; i < 3; ++i) {
    const int64_t before = stage.residency().effort().examined();
    stage.session().step([&] {
      const Handle b = stage.call({}, 1, 100), a = stage.call({}, 1, 400);
      stage.call({}, 1, 200);
      stage.call({}, 3, 1000);
      stage.call({b}, 1, 10);
      stage.call({}, 1, 3000);
      stage.call({a}, 1, 10);
    });
    examined.push_back(stage.residency().effort().examined() - before);
  }
  EXPECT_GT(examined[1], examined[2]);
}

// Nine calls in a chain make three segments:
//   0 1 2 | 3 4 5 | 6 7 8     2 and 5 cross the borders; the last segment stays
TEST(Checkpoint, DropsWhatLiesInsideSegments) {
  Stage stage("checkpoint", 64, 0);
  for (int i = 0; i < 3; ++i) {
    std::vector<Handle> chain;
    std::string at_the_end;
    stage.session().step([&] {
      for (int k = 0; k < 9; ++k) {
        chain.push_back(stage.call(k == 0 ? chain : std::vector<Handle>{chain.back()}));
      }
      at_the_end = stage.released(chain);
      stage.residency().set_phase(Phase::kBackward);
      for (int k = 9; k-- > 0;) stage.call({chain[static_cast<size_t>(k)]});
    });
    EXPECT_EQ(at_the_end, i == 0 ? "" : "abde") << "whatever the budget";
    EXPECT_EQ(stage.stats().recomputes, i == 0 ? 0 : 4) << "each once";
  }
}

// Ten calls: the last segment has four.
TEST(Checkpoint, DropsNothingWhereAllIsKnownToFit) {
  Stage stage("checkpoint", 64, 0, {}, {.known_to_fit = true});
  for (int i = 0; i < 3; ++i) {
    stage.session().step([&] {
      std::vector<Handle> chain{stage.call({}, 1)};
      for (int k = 0; k < 9; ++k) chain.push_back(stage.call({chain.back()}, 1));
      stage.residency().set_phase(Phase::kBackward);
      while (!chain.empty()) {
        stage.call({chain.back()}, 1);
        chain.pop_back();
      }
    });
    EXPECT_EQ(stage.stats().evictions, 0);
  }
}

TEST(Checkpoint, KeepsTheLastSegmentWhole) {
  Stage stage("checkpoint", 64, 0);
  for (int i = 0; i < 2; ++i) {
    std::vector<Handle> chain;
    stage.session().step([&] {
      for (int k = 0; k < 10; ++k) {
        chain.push_back(stage.call(k == 0 ? chain : std::vector<Handle>{chain.back()}));
      }
      EXPECT_EQ(stage.released(chain), i == 0 ? "" : "abde");
      stage.residency().set_phase(Phase::kBackward);
      for (int k = 10; k-- > 0;) stage.call({chain[static_cast<size_t>(k)]});
    });
  }
}

// If the user of an evicted storage goes, the storage ends too, and policies are told.
TEST(EveryPolicy, LivesWithHandlesThatGoInAnyState) {
  for (const PolicyInfo& policy : policies()) {
    Stage stage(std::string(policy.name), 6, 64);
    for (int i = 0; i < 4; ++i) {
      stage.session().step([&] {
        Handle a = stage.call({}, 1, 100), b = stage.call({a}, 1, 100);
        Handle c = stage.call({a, b}, 1, 100);
        stage.release(a);
        a = {};
        stage.call({b}, 3, 100);
        stage.release(b);
        const Handle d = stage.call({b, c}, 1, 100);
        b = {};
        stage.call({c}, 3, 100);
      });
      stage.call({}, 5, 10);  // between steps
    }
    EXPECT_EQ(stage.used(), Bytes(0)) << policy.name;
  }
}

}  // namespace
}  // namespace tidemark::testing
