// Leaves a planned step at each of its calls, in each way in which a program, its memory or its
// device may cause it. Results equal those of the same program without plans, and later steps
// follow a plan again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/executor/step_planner.h"
#include "runtime/planner/remat/problem_from_step.h"
#include "runtime/planner/remat/remat_bound.h"
#include "runtime/planner/remat/remat_planner.h"
#include "runtime/planner/remat/step_schedule.h"
#include "runtime/session/session.h"
#include "tests/runtime/executor/exits.h"
#include "tests/runtime/executor/toy_training.h"
#include "tests/support/faulty_arena.h"
#include "tests/support/random_program.h"
#include "tests/support/sanitized.h"
#include "tests/support/schedule_with_order.h"

namespace tidemark::testing {
namespace {

using namespace tidemark::literals;

constexpr int kFewer = kSanitized ? 10 : 1;
constexpr int kCalls = 24;
constexpr int kAllCalls = kCalls + kRandomProgramParameters;

// How steps are planned, which step leaves its plan, and with which programs.
struct Planned {
  const char* name;
  const char* policy;
  double room;  // of the smallest budget
  bool order;
  int exit_step, steps;
  std::vector<uint32_t> seeds;  // the steps of 2, 5 and 7 carry a storage over their end
  int every;                    // one of this many calls is tried
  enum How : uint8_t {
    kByPolicy,
    kAtRandom,  // order and releases are random, by the seed
    kAgain,     // a search for recomputation, in any order, with variants, in little memory
  } how = kByPolicy;
};
const std::vector<Planned>& plans() {
  static const std::vector<Planned> all{
      {"an_order", "delta", 100, true, 4, 9, {1, 3}, kFewer},
      {"the_policys_releases", "delta", 1, true, 5, 12, {1, 2, 4}, 2 * kFewer},
      {"an_order_with_releases",
       "delta",
       100,
       true,
       4,
       9,
       {1, 4, 5, 6},
       2 * kFewer,
       Planned::kAtRandom},
      {"variants_and_runs_again",
       "delta",
       100,
       true,
       4,
       9,
       {6, 20, 23},
       2 * kFewer,
       Planned::kAgain},
      {"releases_found_by_a_search", "tide", 1, false, 6, 14, {8, 7}, 3 * kFewer},
  };
  return all;
}

SessionOptions options_of(const Planned& planned) {
  SessionOptions options;
  options.threads = 1;
  options.budget = align_up(share_of(kRandomProgramSmallest, planned.room));
  options.policy = planned.policy;
  options.host_limit = 64_MiB;
  options.residency.poison = true;
  options.costs = std::make_shared<const CostTable>();  // so that decisions repeat
  options.event_capacity = 1 << 12;
  return options;
}

// In so little more than the least memory that much is computed again. None if the search finds
// nothing.
std::optional<Schedule> plan_runs_again(const StepTrace& trace, const PlanLimits& limits,
                                        const std::vector<Bytes>& foreign) {
  const auto step = planner::remat::problem_from_step(trace);
  const int64_t least = planner::remat::bound_budget(step.problem);
  planner::remat::RematOptions options;
  options.limits.seconds = 1e9;
  options.limits.nodes = 1000;
  const auto plan = planner::remat::plan_remat(step.problem, least + least / 8, options);
  if (!plan.found()) return std::nullopt;
  return schedule_from_runs(trace, step, plan.schedule.events, limits, foreign).schedule;
}

// A session with plans, on an arena that can fail.
class PlannedSession {
 public:
  PlannedSession(const Planned& how, uint32_t seed, PlanOptions options = quiet())
      : PlannedSession(options_of(how), make_cpu_device({.threads = 1})) {
    options.order = how.order;
    if (how.how == Planned::kAgain) options.producer = plan_runs_again;
    if (how.how == Planned::kAtRandom) {
      options.producer = [seed](const StepTrace& trace, const PlanLimits& limits,
                                const std::vector<Bytes>& foreign) {
        return random_order_and_releases(trace, limits, foreign, seed);
      };
    }
    session_.plan_steps(options);
  }
  Session& session() { return session_; }
  FaultyArena& arena() { return *arena_; }
  FaultyDevice& device() { return *device_; }

 private:
  PlannedSession(const SessionOptions& options, std::unique_ptr<Device> real)
      : PlannedSession(options, std::make_unique<FaultyDevice>(std::move(real))) {}
  PlannedSession(const SessionOptions& options, std::unique_ptr<FaultyDevice> device)
      : PlannedSession(
            options,
            std::make_unique<FaultyArena>(*device, MemoryKind::kDevice, *options.budget),
            device) {}
  PlannedSession(const SessionOptions& options, std::unique_ptr<FaultyArena> arena,
                 std::unique_ptr<FaultyDevice>& device)
      : arena_(arena.get()),
        device_(device.get()),
        session_(options, std::move(device), std::move(arena)) {}

  FaultyArena* const arena_;
  FaultyDevice* const device_;
  Session session_;
};

// Whether the previous step followed a plan, its own or the policy's.
bool was_planned(Session& session) {
  bool last = false, now = false;
  session.events().for_each([&](const EventRecord& event) {
    if (event.kind == EventKind::kStepBegin) last = std::exchange(now, false);
    if (event.reason == Reason::kPlan) now = true;
  });
  return session.last_step().planned || last;
}

struct ProgramRun {
  std::vector<uint64_t> read;  // the values that the program reads
  std::vector<bool> planned;   // by step, but for the last
  int errors = 0;              // steps that ended with an error
};

// `breaks` is called at the beginning of the step that leaves its plan, `mends` at the
// beginning of the next one.
ProgramRun run(
    Session& session, uint32_t seed, const Planned& how, Exit exit, int at,
    const std::function<void()>& breaks = [] {}, const std::function<void()>& mends = [] {}) {
  Handle kept;
  ProgramRun result;
  std::vector<uint64_t> more;
  const BeforeCall before = [&](int step, int call, std::vector<Handle>& live) {
    if (call == 0 && step > 0) result.planned.push_back(was_planned(session));
    if (call == 0 && step == how.exit_step) breaks();
    if (call == 0 && step == how.exit_step + 1) mends();
    if (call == 0 && step == how.exit_step + 1 && kept) {
      more.push_back(toy_hash(session, kept));
      kept = {};
    }
    if (step != how.exit_step || call != at) return true;
    const Handle& last = live.back();
    switch (exit) {
      case Exit::kNone: break;
      case Exit::kExtraCall: kept = toy_call(session, {last}, {{256}}, 7)[0]; break;
      case Exit::kExtraUpload: kept = toy_upload(session, 256, 7); break;
      case Exit::kExtraRead: more.push_back(toy_hash(session, last)); break;
      case Exit::kHandleKept: kept = last; break;
      case Exit::kEndsEarly: return false;
      case Exit::kThrows: throw StepStopped();
    }
    return true;
  };
  result.read = run_random_program(session, seed, how.steps, kCalls, /*alike=*/true, before,
                                   [&](const Error&) { return ++result.errors > 0; });
  result.read.insert(result.read.end(), more.begin(), more.end());
  return result;
}

std::vector<uint64_t> unplanned(uint32_t seed, const Planned& how, Exit exit, int at) {
  SessionOptions options = options_of(how);
  options.policy = "none";
  options.budget = 64_MiB;
  options.host_limit = Bytes(0);
  Session session(options, make_cpu_device({.threads = 1}));
  return run(session, seed, how, exit, at).read;
}

class PlanExitsBy : public ::testing::TestWithParam<Planned> {};

TEST_P(PlanExitsBy, OfTheProgramAtEachCall) {
  const Planned& how = GetParam();
  for (const uint32_t seed : how.seeds) {
    for (auto exit = Exit::kNone; exit <= Exit::kThrows; exit = Exit(int(exit) + 1)) {
      // Each exit is tried at each call, for some of the seeds.
      const int first = exit == Exit::kNone
                            ? 0
                            : (static_cast<int>(seed) + static_cast<int>(exit)) % how.every;
      for (int at = first; at < (exit == Exit::kNone ? 1 : kAllCalls); at += how.every) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " +
                     kExitNames[static_cast<size_t>(exit)] + " at call " + std::to_string(at));
        PlannedSession planned(how, seed);
        const ProgramRun found = run(planned.session(), seed, how, exit, at);
        ASSERT_EQ(found.read, unplanned(seed, how, exit, at));
        EXPECT_TRUE(found.planned[static_cast<size_t>(how.exit_step) - 1]);
        EXPECT_TRUE(found.planned.back());
      }
    }
  }
}

// A failed step leaves what the program had made before one of its calls.
void expect_stopped_somewhere(const Planned& how,
                              const std::function<void(PlannedSession&, int64_t nth)>& break_at,
                              const std::function<bool(PlannedSession&)>& mend) {
  int failed = 0;
  for (const uint32_t seed : how.seeds) {
    const auto whole = unplanned(seed, how, Exit::kNone, 0);
    std::vector<std::vector<uint64_t>> stopped{whole};
    for (int at = 0; at < kAllCalls; ++at)
      stopped.push_back(unplanned(seed, how, Exit::kThrows, at));
    bool reached = true;
    for (int64_t nth = 1; reached; nth += how.every) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", the step's number " +
                   std::to_string(nth));
      PlannedSession planned(how, seed);
      const ProgramRun found = run(
          planned.session(), seed, how, Exit::kNone, 0, [&] { break_at(planned, nth); },
          [&] { reached = mend(planned); });
      ASSERT_NE(std::find(stopped.begin(), stopped.end(), found.read), stopped.end());
      EXPECT_TRUE(found.planned.back());
      failed += found.errors;
    }
  }
  EXPECT_GT(failed, 0);
}

TEST_P(PlanExitsBy, AsAKernelFails) {
  expect_stopped_somewhere(
      GetParam(),
      [](PlannedSession& planned, int64_t nth) {
        planned.device().fail(CallKind::kKernel, StreamId::kCompute, nth);
      },
      [](PlannedSession& planned) {
        planned.device().heal();
        return planned.device().faults() > 0;
      });
}

// Tide's plans of this program have a small shortfall and therefore no places: space is made at
// run time. All other plans give each block its place.
Planned without_places() {
  Planned how = plans().back();
  how.seeds = {34};
  return how;
}

TEST(PlanExits, OfTidesAsAnAllocationThrows) {
  expect_stopped_somewhere(
      without_places(),
      [](PlannedSession& planned, int64_t nth) {
        planned.arena().fail(nth, AllocationFault::kThrowOnce);
      },
      [](PlannedSession& planned) {
        planned.arena().heal();
        return planned.arena().faults() > 0;
      });
}

// Space is then made, and nothing fails.
TEST(PlanExits, OfTidesAsThereIsNoRoomOnce) {
  const Planned how = without_places();
  const uint32_t seed = how.seeds.front();
  const auto whole = unplanned(seed, how, Exit::kNone, 0);
  bool reached = true;
  int64_t faults = 0;
  for (int64_t nth = 1; reached; nth += how.every) {
    PlannedSession planned(how, seed);
    const ProgramRun found = run(
        planned.session(), seed, how, Exit::kNone, 0,
        [&] { planned.arena().fail(nth, AllocationFault::kNoneOnce); },
        [&] {
          planned.arena().heal();
          reached = planned.arena().faults() > 0;
        });
    ASSERT_EQ(found.read, whole) << "allocation " << nth;
    EXPECT_TRUE(found.planned.back());
    faults += reached;
  }
  EXPECT_GT(faults, kSanitized ? 1 : 3);
}

// While the search's second schedule is being made, memory twice fails to follow the first.
TEST(PlanExits, WhatFailedIsNotFollowedAgain) {
  Planned how = plans().back();
  how.steps = 16;
  const uint32_t seed = how.seeds.front();
  std::vector<std::string> said;
  std::atomic<bool> released{false};
  int threads = 0;
  PlanOptions options = quiet(&said);
  options.background = true;
  options.thread = [&](std::function<void()> work) {
    const bool waits = ++threads == 2;
    return std::thread([&released, waits, work = std::move(work)] {
      while (waits && !released) std::this_thread::yield();
      work();
    });
  };
  PlannedSession planned(how, seed, options);
  const std::shared_ptr<void> release(nullptr, [&](void*) { released = true; });
  StepPlanner& planner = *planned.session().planner();
  const auto given_up = [&] {
    return std::any_of(said.begin(), said.end(), [](const std::string& line) {
      return line.find("run under the policy") != std::string::npos;
    });
  };
  // Every other step: the step after one that left its schedule goes by the policy.
  int first = -1;
  const BeforeCall before = [&](int step, int call, std::vector<Handle>&) {
    if (call == 0 && threads < 2) planner.finish_planning();
    if (call == 0 && threads == 2 && first < 0) first = step;
    if (call == 3 && first >= 0 && step <= first + 2 && (step - first) % 2 == 0)
      planned.arena().refuse_place();
    return true;
  };
  const auto read = run_random_program(planned.session(), seed, how.steps, kCalls,
                                       /*alike=*/true, before);
  EXPECT_EQ(read, unplanned(seed, how, Exit::kNone, 0));
  EXPECT_EQ(threads, 2);
  EXPECT_TRUE(given_up());
  EXPECT_EQ(planner.current(), nullptr);
  const size_t lines = said.size();
  released = true;
  planner.finish_planning();
  EXPECT_EQ(planner.current(), nullptr) << said.back();
  EXPECT_EQ(said.size(), lines) << said.back();
}

// What the plans with variants exercise.
TEST(PlanExits, PlansWithVariantsHaveSome) {
  for (const Planned& how : plans()) {
    if (how.how != Planned::kAgain) continue;
    for (const uint32_t seed : how.seeds) {
      SCOPED_TRACE(seed);
      PlannedSession planned(how, seed);
      run(planned.session(), seed, how, Exit::kNone, 0);
      const BoundSchedule* bound = planned.session().planner()->current();
      ASSERT_TRUE(bound);
      const auto count = [&](const auto& of) {
        const auto& code = bound->schedule.code;
        return std::count_if(code.begin(), code.end(), of);
      };
      EXPECT_GT(count([](const auto& it) { return it.variant != 0; }), 0);
      EXPECT_GT(count([](const auto& it) { return it.again; }), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanExitsBy, ::testing::ValuesIn(plans()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tidemark::testing
