// Recorded programs under budgets: what is computed again, worked out by hand where it is
// small.
#include "examples/dtr_log/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/policy/registry.h"

namespace tidemark {
namespace {

DtrLog bundled(const std::string& name) {
  return read_dtr_log(std::string(TIDEMARK_LOGS "/") + name + ".log");
}

class ReplayTest : public ::testing::Test {
 protected:
  ReplayResult run(const DtrLog& log, Bytes budget, const std::string& policy = "dtr",
                   Bytes host = Bytes(0), int rounds = 1) const {
    SessionOptions options{.budget = budget, .policy = policy, .host_limit = host};
    options.delta.plan_effort = 500'000;  // how good tide's schedules are does not matter here
    return replay(log, options, profile_, rounds);
  }
  const DeviceProfile profile_ = load_profile("a100-80gb");
};

//   KiB:  x 1 (constant)  l 1  r 1  b 2  y 1; join reads l and r with b still there: 6 in all
TEST_F(ReplayTest, ADiamondByHand) {
  const DtrLog log = bundled("diamond");
  EXPECT_EQ(log.time, Nanos(7200));
  const ReplayResult free = replay_unmanaged(log, profile_);
  EXPECT_EQ(free.peak, Bytes(6 << 10));
  EXPECT_EQ(free.computed, Nanos(7200));
  EXPECT_EQ(free.stats.duration, Nanos(7200));

  // b makes room for y and is not wanted again.
  const ReplayResult five = run(log, Bytes(5 << 10));
  EXPECT_EQ(five.stats.evictions, 1);
  EXPECT_EQ(five.computed, Nanos(7200));
  // l makes room for b, and b for l, which is computed again.
  const ReplayResult four = run(log, Bytes(4 << 10));
  EXPECT_EQ(four.stats.recomputes, 1);
  EXPECT_EQ(four.computed, Nanos(8200));
  EXPECT_EQ(four.peak, Bytes(4 << 10));
  // x, r and b do not fit.
  EXPECT_THROW(run(log, Bytes(3 << 10)), OutOfMemory);
}

TEST_F(ReplayTest, WhatFitsIsComputedOnce) {
  for (const char* name : {"linear", "resnet", "lstm"}) {
    SCOPED_TRACE(name);
    const DtrLog log = bundled(name);
    const Bytes peak = replay_unmanaged(log, profile_).peak;
    for (const PolicyInfo& policy : policies()) {
      const ReplayResult result = replay(
          log, {.budget = peak, .unmanaged_peak = peak, .policy = std::string(policy.name)},
          profile_);
      EXPECT_EQ(result.computed, log.time) << policy.name;
      EXPECT_EQ(result.stats.evictions + result.stats.offloads, 0) << policy.name;
    }
  }
}

TEST_F(ReplayTest, UnderEveryPolicyWithTiersAndWithout) {
  for (const char* name : {"linear", "resnet", "lstm"}) {
    const DtrLog log = bundled(name);
    const Bytes peak = replay_unmanaged(log, profile_).peak;
    const Bytes budget = align_up(share_of(peak, 0.6));
    // Where all has to be computed again, what a recomputation reads has to be there at once.
    const Bytes alone_budget = align_up(share_of(peak, 0.8));
    for (const PolicyInfo& policy : policies()) {
      SCOPED_TRACE(std::string(name) + " under " + std::string(policy.name));
      const ReplayResult tiered = run(log, budget, std::string(policy.name), 2 * peak, 3);
      EXPECT_GE(tiered.computed, log.time);
      EXPECT_LE(tiered.peak, budget);
      EXPECT_GT(tiered.stats.evictions + tiered.stats.offloads + tiered.stats.clean_drops, 0);
      if (!policy.evicts) {
        EXPECT_EQ(tiered.computed, log.time);
        continue;
      }
      const ReplayResult alone = run(log, alone_budget, std::string(policy.name));
      EXPECT_GT(alone.stats.evictions, 0);
      EXPECT_EQ(alone.stats.offloads, 0);
      EXPECT_LE(alone.peak, alone_budget);
    }
  }
}

// Chen et al.: with room for two square roots of the layers, one more forward pass is enough.
TEST_F(ReplayTest, AChainInLittleMemoryCostsAboutAForwardPass) {
  const DtrLog log = bundled("linear");
  const ReplayResult result = run(log, Bytes(24 << 20));
  EXPECT_GT(result.overhead(log), 1.0);
  EXPECT_LT(result.overhead(log), 1.6);
}

TEST_F(ReplayTest, TheSameEachTime) {
  const DtrLog log = bundled("lstm");
  const Bytes budget = align_up(share_of(replay_unmanaged(log, profile_).peak, 0.5));
  for (const char* policy : {"dtr", "tide"}) {
    const ReplayResult one = run(log, budget, policy, Bytes(64 << 20), 16);
    const ReplayResult two = run(log, budget, policy, Bytes(64 << 20), 16);
    EXPECT_EQ(one.computed, two.computed);
    EXPECT_EQ(one.stats.duration, two.stats.duration);
  }
}

// resnet.log lets go of all constants, lstm.log keeps some and makes others on the way.
TEST_F(ReplayTest, RoundsGoByAPlan) {
  for (const auto& [name, share] : {std::pair("lstm", 0.8), {"resnet", 0.9}}) {
    SCOPED_TRACE(name);
    const DtrLog log = bundled(name);
    const Bytes budget = align_up(share_of(replay_unmanaged(log, profile_).peak, share));
    const ReplayResult first = run(log, budget, "tide");
    EXPECT_EQ(first.planned, 0);
    const ReplayResult settled =
        replay(log, {.budget = budget, .policy = "tide"}, profile_, std::nullopt);
    EXPECT_LE(settled.rounds, kMaxRounds);
    EXPECT_GT(settled.planned, 0);
    EXPECT_EQ(settled.planned, settled.stats.evictions);
    EXPECT_LE(settled.computed, first.computed);
  }
}

TEST_F(ReplayTest, ConstantsThatStayAreThereFromRoundToRound) {
  const auto constant = [](const std::string& name, int bytes) {
    return R"({"INSTRUCTION":"CONSTANT","NAME":")" + name + "\"}\n" +
           R"({"INSTRUCTION":"MEMORY","NAME":")" + name + R"(","MEMORY":)" +
           std::to_string(bytes) + "}\n";
  };
  const DtrLog log = parse_dtr_log(
      "log",
      constant("stays", 1024) + constant("goes", 2048) +
          R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":["stays","goes"],"RESULT":["y"],"TIME":5}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":512}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":-1}
{"INSTRUCTION":"RELEASE","NAME":"goes"}
)" + constant("late", 2048));
  for (const int rounds : {1, 3}) {
    const ReplayResult result = run(log, Bytes(1024 + 2048 + 512), "none", Bytes(0), rounds);
    EXPECT_EQ(result.peak, Bytes(1024 + 2048 + 512));
    EXPECT_EQ(result.computed, log.time);
    EXPECT_EQ(result.stats.duration, log.time);  // they take no time
  }
}

TEST_F(ReplayTest, AnotherScheduleWhereThePolicyRunsOutOfMemory) {
  for (const char* name : {"resnet", "lstm"}) {
    const DtrLog log = bundled(name);
    const Bytes budget = align_up(share_of(replay_unmanaged(log, profile_).peak, 0.5));
    for (const char* policy : {"tide", "delta", "lru", "dtr", "msps"}) {
      SCOPED_TRACE(std::string(name) + " under " + policy);
      const ReplayResult result =
          replay_feasibly(log, {.budget = budget, .policy = policy}, profile_);
      EXPECT_LE(result.peak, budget);
      if (result.schedule.policy == policy) continue;
      EXPECT_NO_THROW(find_policy(result.schedule.policy));
      if (policy == std::string("tide")) continue;  // it makes way for what is quicker, too
      EXPECT_THROW(run(log, budget, policy), OutOfMemory);
    }
  }
}

// In the first two budgets plans of so little effort are 0.2 % slower than a policy's step.
TEST_F(ReplayTest, NoPolicyIsAheadOfTide) {
  for (const auto& [name, share] :
       {std::pair("resnet", 0.86), {"lstm", 0.86}, {"resnet", 0.6}}) {
    const DtrLog log = bundled(name);
    const Bytes peak = replay_unmanaged(log, profile_).peak;
    SessionOptions options{.budget = align_up(share_of(peak, share)), .policy = "tide"};
    options.delta.plan_effort = 20'000;
    const ReplayResult tide = replay_feasibly(log, options, profile_, {});
    for (const PolicyInfo& policy : policies()) {
      if (policy.reference) continue;
      SCOPED_TRACE(std::string(name) + " under " + std::string(policy.name));
      options.policy = policy.name;
      const ReplayResult other = replay_feasibly(log, options, profile_, {});
      EXPECT_LE(tide.stats.modelled, other.stats.modelled) << tide.schedule.name();
    }
  }
}

TEST_F(ReplayTest, AnInfeasibleBudgetIsRefusedWithOneThatIsFeasible) {
  const DtrLog log = bundled("resnet");
  Bytes least{0};
  try {
    replay_feasibly(log, {.budget = Bytes(8 << 20), .policy = "lru"}, profile_);
  } catch (const InfeasibleBudget& error) {
    least = error.minimum();
  }
  ASSERT_GT(least, Bytes(8 << 20));
  EXPECT_LE(replay_feasibly(log, {.budget = least, .policy = "lru"}, profile_).peak, least);
}

TEST_F(ReplayTest, AnEmptyLog) {
  const DtrLog log = parse_dtr_log("log", "");
  EXPECT_EQ(replay_unmanaged(log, profile_).computed, Nanos(0));
  EXPECT_EQ(run(log, Bytes(512)).overhead(log), 1);
}

}  // namespace
}  // namespace tidemark
