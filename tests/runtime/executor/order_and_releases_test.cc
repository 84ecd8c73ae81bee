// Schedules that defer calls and release storages at the same time. In any order, and wherever
// a step leaves its schedule, results equal those of the same program without a plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor/step_planner.h"
#include "tests/runtime/executor/exits.h"
#include "tests/runtime/executor/toy_training.h"
#include "tests/support/random_program.h"
#include "tests/support/sanitized.h"
#include "tests/support/schedule_with_order.h"

namespace tidemark::testing {
namespace {

constexpr int kExitStep = 4, kStepsWithExit = 7;

struct Leaves {
  Exit exit = Exit::kNone;
  int at = 0;
};

// w is written while `a`, which was computed from it, is still needed.
//
//   0 a = f(w)      1 b = g(a)         2 update w by b    3 c = h(b, u)
//   4 update u by c                    5 d = k(a, c)      6 update v by d
class WritesWhatIsReadAgain {
 public:
  static constexpr int kCalls = 7;

  explicit WritesWhatIsReadAgain(int64_t host) : scene_({.arena = 64, .host = host}) {
    w_ = scene_.data(2, Category::kParameter);
    u_ = scene_.data(1, Category::kParameter);
    v_ = scene_.data(1, Category::kParameter);
  }

  std::vector<uint64_t> run(const Leaves& leaves) {
    std::vector<uint64_t> read;
    for (int i = 0; i < kStepsWithExit; ++i) {
      Handle kept;
      try {
        planned_.push_back(
            scene_.session()
                .step([&] { step(i == kExitStep ? leaves : Leaves(), read, kept); })
                .planned);
      } catch (const StepStopped&) {
        planned_.push_back(false);
      }
      if (kept) read.push_back(scene_.hash(kept));
    }
    for (const Handle& parameter : {w_, u_, v_}) read.push_back(scene_.hash(parameter));
    return read;
  }

  Session& session() { return scene_.session(); }
  const std::vector<bool>& planned() const { return planned_; }

 private:
  void step(const Leaves& leaves, std::vector<uint64_t>& read, Handle& kept) {
    Handle a, b, c, d;
    const std::vector<std::function<void()>> calls{[&] { a = scene_.call({w_}, 3); },
                                                   [&] { b = scene_.call({a}, 1); },
                                                   [&] {
                                                     scene_.update({w_, b});
                                                   },
                                                   [&] {
                                                     c = scene_.call({b, u_}, 2), b = {};
                                                   },
                                                   [&] {
                                                     scene_.update({u_, c});
                                                   },
                                                   [&] {
                                                     d = scene_.call({a, c}, 1);
                                                   },
                                                   [&] {
                                                     a = c = {}, scene_.update({v_, d});
                                                   }};
    for (int i = 0; i < kCalls; ++i) {
      if (leaves.exit != Exit::kNone && leaves.at == i) {
        const Handle& last = d ? d : c ? c : b ? b : a ? a : w_;
        switch (leaves.exit) {
          case Exit::kNone: break;
          case Exit::kExtraCall: kept = scene_.call({last}, 2); break;
          case Exit::kExtraUpload: kept = scene_.data(2); break;
          case Exit::kExtraRead: read.push_back(scene_.hash(last)); break;
          case Exit::kHandleKept: kept = last; break;
          case Exit::kEndsEarly: return;
          case Exit::kThrows: throw StepStopped();
        }
      }
      calls[static_cast<size_t>(i)]();
    }
  }

  Scene scene_;
  Handle w_, u_, v_;
  std::vector<bool> planned_;
};

// w is written after d is made. `a`, away in between, is recomputed from a w that the program
// has already overwritten. The write of u makes the runtime check again what can be recomputed.
std::optional<Schedule> evict_the_reader(const StepTrace& trace, const PlanLimits& limits,
                                         const std::vector<Bytes>& foreign) {
  const auto evict_a = [](const StepTable&) {
    return std::vector<planner::PlannedRelease>{{1, 1, 4, planner::Release::kEvict, 0}};
  };
  auto found = schedule_with(trace, {0, 1, 3, 4, 5, 2, 6}, evict_a, limits, foreign);
  EXPECT_TRUE(found);
  EXPECT_TRUE(releases(*found) && !in_program_order(*found));
  return found;
}

TEST(OrderAndReleases, AReaderOfWhatAPutOffCallWritesIsMadeAgain) {
  for (const int64_t host : {0, 64}) {
    for (auto exit = Exit::kNone; exit <= Exit::kThrows; exit = Exit(int(exit) + 1)) {
      const int last = exit == Exit::kNone ? 1 : WritesWhatIsReadAgain::kCalls;
      for (int at = 0; at < last; ++at) {
        SCOPED_TRACE(std::string(kExitNames[static_cast<size_t>(exit)]) + " at call " +
                     std::to_string(at));
        WritesWhatIsReadAgain plain(host), planned(host);
        PlanOptions options = quiet();
        options.producer = evict_the_reader;
        planned.session().plan_steps(options);
        ASSERT_EQ(planned.run({exit, at}), plain.run({exit, at}));
        for (int step = 2; step < kStepsWithExit; ++step) {
          // The step that leaves its schedule, and the next, which is recorded.
          const bool left = exit != Exit::kNone && (step == kExitStep || step == kExitStep + 1);
          EXPECT_TRUE(left || planned.planned()[static_cast<size_t>(step)]) << step;
        }
      }
    }
  }
}

// Throws instead of launching the chosen kernel.
class RefusingDevice final : public FaultyDevice {
 public:
  RefusingDevice() : FaultyDevice(make_cpu_device({.threads = 1})) {}
  void refuse(int64_t nth) { left_ = nth; }  // the nth launch from now, from 1
  Event enqueue(StreamId stream, Work work) override {
    if (stream == StreamId::kCompute && --left_ == 0) throw DeviceError("refused");
    return FaultyDevice::enqueue(stream, std::move(work));
  }

 private:
  int64_t left_ = 0;
};

// The fourth call is deferred until the fifth has run and the program has let go of e.
//
//   0 a = f(w)    1 b = g(w)    2 e = h(w)    3 update w by a; lets go of b
//   4 c = k(e)    5 d = l(u, c)    6 update u by d
class PutsAWriteOff {
 public:
  PutsAWriteOff() : PutsAWriteOff(std::make_unique<RefusingDevice>()) {}

  // How a step differs.
  struct Twist {
    bool reads_first = false;
    bool drops_b_early = false;  // before call 3
    bool is_refused = false;     // of the call after e is let go of; then a retry
  };

  // Returns whether the step followed its plan.
  bool step(const Twist& twist) {
    return scene_.session()
        .step([&] {
          if (twist.reads_first) read.push_back(scene_.hash(u_));
          Handle a = scene_.call({w_}), b = scene_.call({w_}), e = scene_.call({w_}), c, d;
          if (twist.drops_b_early) b = {};
          scene_.update({w_, a});
          a = b = {};
          c = scene_.call({e});
          e = {};
          if (twist.is_refused) device_->refuse(1);
          try {
            d = scene_.call({u_, c});
          } catch (const DeviceError&) {
            ++refused;
            d = scene_.call({u_, c});
          }
          c = {};
          scene_.update({u_, d});
        })
        .planned;
  }
  void plan() {
    PlanOptions options = quiet();
    options.producer = [](const StepTrace& trace, const PlanLimits& limits,
                          const std::vector<Bytes>& foreign) {
      // A read may come first.
      const auto first = static_cast<uint32_t>(trace.ops.size() - 7);
      std::vector<uint32_t> order(trace.ops.size());
      std::iota(order.begin(), order.end(), 0U);
      std::swap(order[first + 3], order[first + 4]);
      const auto nothing = [](const StepTable&) {
        return std::vector<planner::PlannedRelease>();
      };
      return schedule_with(trace, order, nothing, limits, foreign);
    };
    scene_.session().plan_steps(options);
  }
  uint64_t result() { return scene_.hash(w_) ^ 3 * scene_.hash(u_); }

  std::vector<uint64_t> read;
  int refused = 0;

 private:
  explicit PutsAWriteOff(std::unique_ptr<RefusingDevice> device)
      : device_(device.get()), scene_({.arena = 64}, std::move(device)) {
    w_ = scene_.data(2, Category::kParameter);
    u_ = scene_.data(1, Category::kParameter);
  }

  RefusingDevice* const device_;
  Scene scene_;
  Handle w_, u_;
};

// Runs steps with `all`, then one with `one`, and two more.
void expect_the_same(const PutsAWriteOff::Twist& all, const PutsAWriteOff::Twist& one,
                     int refused = 0) {
  PutsAWriteOff plain, planned;
  planned.plan();
  for (int step = 0; step < 8; ++step) {
    const PutsAWriteOff::Twist& twist = step == 5 ? one : all;
    const bool by_plan = planned.step(twist);
    EXPECT_TRUE(by_plan || step < 2 || step == 5 || step == 6) << step;
    plain.step(twist);
  }
  EXPECT_EQ(planned.refused, refused);
  EXPECT_EQ(planned.read, plain.read);
  EXPECT_EQ(planned.result(), plain.result());
}

TEST(OrderAndReleases, AStepMayBeginWithARead) {
  expect_the_same({.reads_first = true}, {.reads_first = true});
  expect_the_same({.reads_first = true}, {});
  expect_the_same({}, {.reads_first = true});
}

TEST(OrderAndReleases, AHandleMayBeDroppedBeforeItsTime) {
  expect_the_same({}, {.drops_b_early = true});
}

// The deferred call runs when the program retries the call that triggered it.
TEST(OrderAndReleases, APutOffCallThatFailsToLaunchIsNotForgotten) {
  expect_the_same({}, {.is_refused = true}, 1);
}

// s is recomputed, w is written, and s is let go of while r, which was computed from s, is
// resident and e is away. The policy would keep s in case it evicts r. By the schedule, y takes
// its place.
//
//   0 s = f(w)    1 e = g(u)    2 r = h(s)    3 x = k(v)    4 update w by s
//   5 y = l(u)    6 z = m(e, r, y)    7 update u by z    8 update v by x
TEST(OrderAndReleases, WhatAScheduleFreesGoesAlthoughItIsRead) {
  const auto run = [](bool plans) {
    Scene scene({.arena = 64});
    const Handle w = scene.data(2, Category::kParameter);
    const Handle u = scene.data(1, Category::kParameter);
    const Handle v = scene.data(1, Category::kParameter);
    PlanOptions options = quiet();
    options.producer = [](const StepTrace& trace, const PlanLimits& limits,
                          const std::vector<Bytes>& foreign) {
      std::vector<uint32_t> order(trace.ops.size());
      std::iota(order.begin(), order.end(), 0U);
      const auto evict_s_and_e = [&](const StepTable&) {
        const uint32_t s = trace.ops[0].outputs[0], e = trace.ops[1].outputs[0];
        return std::vector<planner::PlannedRelease>{{s, 2, 4, planner::Release::kEvict, 0},
                                                    {e, 1, 6, planner::Release::kEvict, 0}};
      };
      PlanLimits least = limits;  // so that y lies where s was
      std::optional<Schedule> found, next;
      for (; (next = schedule_with(trace, order, evict_s_and_e, least, foreign));
           least.space -= kAlignment)
        found = next;
      EXPECT_TRUE(found && releases(*found));
      return found;
    };
    if (plans) scene.session().plan_steps(options);
    for (int step = 0; step < 6; ++step) {
      const StepStats stats = scene.session().step([&] {
        Handle s = scene.call({w}, 4), e = scene.call({u}), r = scene.call({s});
        const Handle x = scene.call({v}, 4);
        scene.update({w, s});
        s = {};
        const Handle y = scene.call({u}, 4), z = scene.call({e, r, y});
        e = r = {};
        scene.update({u, z});
        scene.update({v, x});
      });
      EXPECT_EQ(stats.planned, plans && step > 1) << step;
    }
    return std::vector<uint64_t>{scene.hash(w), scene.hash(u), scene.hash(v)};
  };
  EXPECT_EQ(run(true), run(false));
}

// Layers, their gradients, and updates at the end. Even the order with the least peak needs
// more than the budget, so the search continues from it.
TEST(OrderAndReleases, BelowTheLeastPeakASearchTakesBoth) {
  const auto run = [](Session& session, int steps) {
    std::vector<Handle> weights;
    for (uint32_t i = 0; i < 6; ++i)
      weights.push_back(toy_upload(session, 512, i, Category::kParameter));
    for (int i = 0; i < steps; ++i) {
      session.step([&] {
        uint32_t salt = 100 * static_cast<uint32_t>(i);
        Handle x = toy_upload(session, 256, ++salt);
        std::vector<Handle> saved, gradients(weights.size());
        for (const Handle& weight : weights) {
          saved.push_back(x);
          x = toy_call(session, {x, weight}, {{256}}, ++salt)[0];
        }
        for (size_t k = weights.size(); k-- > 0;) {
          gradients[k] = toy_call(session, {x, saved[k]}, {{1024}}, ++salt)[0];
          x = toy_call(session, {x, weights[k]}, {{256}}, ++salt)[0];
          saved.pop_back();
        }
        for (size_t k = 0; k < weights.size(); ++k) {
          toy_update(session, {weights[k], gradients[k]}, ++salt);
          gradients[k] = {};
        }
      });
    }
    std::vector<uint64_t> read;
    for (const Handle& weight : weights) read.push_back(toy_hash(session, weight));
    return read;
  };
  CostTable costs = toy_costs();
  costs.offload_bandwidth = costs.reload_bandwidth = 1e9;
  const auto session_in = [costs = std::make_shared<const CostTable>(costs)](
                              Bytes budget, const char* policy) {
    const SessionOptions options{.threads = 1,
                                 .budget = budget,
                                 .policy = policy,
                                 .residency = {.poison = true},
                                 .costs = costs,
                                 .host_limit = Bytes(1 << 20)};
    return std::make_unique<Session>(options, make_cpu_device({.threads = 1}));
  };
  const auto expected = run(*session_in(Bytes(1 << 20), "delta"), 16);
  const auto ordered = session_in(Bytes(1 << 20), "delta");
  ordered->plan_steps(quiet());
  run(*ordered, 4);
  const Bytes need = 6 * Bytes(2048) + ordered->planner()->current()->schedule.peak;
  int both = 0;
  for (Bytes budget = need - kAlignment; budget >= need - Bytes(6144); budget -= Bytes(1024)) {
    const auto session = session_in(budget, "tide");
    std::vector<std::string> said;
    session->plan_steps(quiet(&said));
    ASSERT_EQ(run(*session, 16), expected) << budget.count();
    const BoundSchedule* bound = session->planner()->current();
    ASSERT_TRUE(bound) << budget.count() << ": " << ::testing::PrintToString(said);
    EXPECT_GT(session->planner()->counts().planned_steps, 8);
    EXPECT_EQ(session->planner()->counts().mismatches, 0) << ::testing::PrintToString(said);
    if (releases(bound->schedule) && !in_program_order(bound->schedule)) ++both;
  }
  EXPECT_GT(both, 2);
}

// The position of a free whose storage is last used by an operator that runs later in the
// schedule than in the program, after the program has let go of the storage. None: there is
// none.
std::optional<uint32_t> free_after_put_off_use(const StepTrace& trace,
                                               const Schedule& schedule) {
  std::vector<uint32_t> released_by(trace.storages.size() + schedule.foreign.size(),
                                    UINT32_MAX);
  std::vector<bool> outlives(released_by.size());
  std::vector<bool> has_run(trace.ops.size());
  for (uint32_t op = 0; op < trace.ops.size(); ++op) {
    for (const uint32_t storage : trace.ops[op].released) released_by[storage] = op;
  }
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < schedule.code.size(); ++i) {
    const Schedule::Instruction& instruction = schedule.code[i];
    if (is_program_op(instruction)) {
      has_run[instruction.subject] = true;
      for (const StepTrace::Input& input : trace.ops[instruction.subject].inputs) {
        const uint32_t released = released_by[input.storage];
        outlives[input.storage] =
            released != UINT32_MAX && released != instruction.subject && has_run[released];
      }
    } else if (instruction.what == Schedule::Do::kFree && outlives[instruction.subject]) {
      found = i;
    }
  }
  return found;
}

// Before that free, moves the storage to above everything else.
void move_before_free(const StepTrace& trace, Schedule& schedule) {
  auto& code = schedule.code;
  const auto found = free_after_put_off_use(trace, schedule);
  if (!schedule.placed || !found) return;
  const uint32_t at = *found;
  const uint32_t storage = code[at].subject;
  const auto ends = std::find_if(
      schedule.blocks.begin(), schedule.blocks.end(),
      [&](const auto& block) { return block.storage == storage && block.end == at + 1; });
  if (ends == schedule.blocks.end()) return;
  const Bytes size = ends->size;
  for (auto& block : schedule.blocks) {
    if (block.begin >= at) ++block.begin;
    if (block.end > at) ++block.end;
  }
  ends->end = at;
  auto next = static_cast<uint32_t>(schedule.blocks.size());
  for (uint32_t i = at; i < code.size(); ++i) {
    if (code[i].blocks > 0) next = std::min(next, code[i].first_block++);
  }
  schedule.blocks.insert(schedule.blocks.begin() + next,
                         {storage, size, at, at + 2, Offset(schedule.peak.count())});
  code.insert(
      code.begin() + at,
      {.what = Schedule::Do::kMove, .subject = storage, .first_block = next, .blocks = 1});
  schedule.peak += align_up(size);
}

// Random programs in random orders with random releases, with and without a tier.
TEST(OrderAndReleases, RandomSchedulesKeepTheBits) {
  constexpr int kSeeds = kSanitized ? 25 : 150;
  int64_t planned = 0;
  int made = 0, both = 0, given_up = 0, not_valid = 0;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const auto run = [&](bool plans, Bytes host, bool moves = false) {
      SessionOptions options;
      options.threads = 1;
      options.budget = Bytes(64 << 20);
      options.host_limit = host;
      options.residency.poison = true;
      Session session(options, make_cpu_device({.threads = 1}));
      if (plans) {
        PlanOptions plan = quiet();
        plan.producer = [&](const StepTrace& trace, const PlanLimits& limits,
                            const std::vector<Bytes>& foreign) {
          PlanLimits below = limits;  // for the move, which goes above it
          below.space -= Bytes(1 << 20);
          auto found = random_order_and_releases(trace, below, foreign, seed);
          if (found) ++made;
          if (found && releases(*found) && !in_program_order(*found)) ++both;
          if (found && moves) move_before_free(trace, *found);
          return found;
        };
        plan.report = [&](std::string_view line) {
          if (line.find("plan relies on keeps changing") != line.npos) ++given_up;
          if (line.find("not valid") != line.npos) ++not_valid;
        };
        session.plan_steps(plan);
      }
      auto read = run_random_program(session, seed, 6, 30, /*alike=*/true);
      if (plans) planned += session.planner()->counts().planned_steps;
      return read;
    };
    const auto expected = run(false, Bytes(0));
    ASSERT_EQ(run(true, Bytes(0)), expected) << seed;
    ASSERT_EQ(run(true, Bytes(64 << 20)), expected) << seed;
    ASSERT_EQ(run(true, Bytes(64 << 20), true), expected) << seed;
  }
  EXPECT_EQ(not_valid, 0);
  EXPECT_GT(both, kSeeds * 2 / 5);
  EXPECT_GT(planned, kSeeds * 4 / 3);
  EXPECT_EQ(given_up, 0);
  EXPECT_GT(made, 2 * kSeeds);
}

}  // namespace
}  // namespace tidemark::testing
