// Plans that leave streams independent, and the validator's rule for them.
#include "runtime/planner/baselines/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/core/errors.h"
#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/parallel_safe.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/validator.h"
#include "runtime/schedule/schedule_validator.h"
#include "tests/runtime/planner/random_problem.h"
#include "tests/runtime/schedule/schedule_builder.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr StreamSharing kAll[] = {StreamSharing::kPaths, StreamSharing::kAncestors,
                                  StreamSharing::kOffsets};
constexpr Freedom kFreedoms[] = {Freedom::kStreams, Freedom::kOperators};

Problem several_streams(uint64_t seed, int ops, int streams) {
  Problem problem = random_problem(seed, {.ops = ops});
  std::mt19937_64 random(seed);
  for (Operator& op : problem.operators) {
    op.stream = static_cast<int32_t>(random() % static_cast<uint64_t>(streams));
  }
  return problem;
}

// The note's figure: two branches of three, each value of 10 bytes.
//
//   0 -> 1 -> 2 -> 3 -> 7
//   0 -> 4 -> 5 -> 6 -> 7
Problem two_branches() {
  Problem problem;
  for (int i = 0; i < 8; ++i) {
    Storage s;
    s.name = "a" + std::to_string(i);
    s.size = Bytes(10);
    s.at_end = i == 7;
    problem.storages.push_back(s);
    Operator op;
    op.name = "A" + std::to_string(i);
    op.outputs = {i};
    if (i > 0) op.inputs = {i == 4 ? 0 : i - 1};
    op.stream = i >= 4 && i < 7 ? 1 : 0;
    problem.operators.push_back(op);
  }
  problem.operators[7].inputs = {3, 6};
  return problem;
}

TEST(StreamsTest, BranchesOfTheNoteDoNotShare) {
  const Problem problem = two_branches();
  for (const Freedom freedom : kFreedoms) {
    for (const StreamSharing sharing : kAll) {
      StreamOptions options;
      options.freedom = freedom;
      options.sharing = sharing;
      const Plan plan = stream_safe(problem, options);
      EXPECT_THAT(violations(problem, plan), IsEmpty());
      // Two per branch, and their common source, whose bytes only A7 may take.
      EXPECT_EQ(plan.peak, Bytes(50)) << static_cast<int>(sharing);
    }
  }
  // If branches run one after the other, the second lies where the first was.
  const Plan serial = assemble(problem, program_order(problem), false, [](const auto& buffers) {
    return plan_layout(buffers).offsets;
  });
  EXPECT_EQ(serial.peak, Bytes(30));
  Plan claims = serial;
  claims.freedom = Freedom::kStreams;
  EXPECT_THAT(violations(problem, serial), IsEmpty());
  EXPECT_THAT(violations(problem, claims),
              Contains(HasSubstr("their users may run at the same time")));
}

TEST(StreamsTest, OneStreamIsIssueOrder) {
  Problem problem = two_branches();
  for (Operator& op : problem.operators) op.stream = 0;
  const Plan plan = stream_safe(problem);
  EXPECT_THAT(violations(problem, plan), IsEmpty());
  EXPECT_EQ(plan.peak, Bytes(30));
  EXPECT_THROW(stream_safe(problem, {.freedom = Freedom::kIssueOrder}), UsageError);
}

// Colours need no ancestors, which long programs have too many of.
TEST(StreamsTest, PathsShareInLongPrograms) {
  Problem problem;
  const auto count = static_cast<StorageId>(kMaxOpsForBound + 1);
  for (StorageId i = 0; i < count; ++i) {
    Storage s;
    s.name = "a" + std::to_string(i);
    s.size = Bytes(10);
    problem.storages.push_back(s);
    Operator op;
    op.name = "A" + std::to_string(i);
    op.outputs = {i};
    if (i > 0) op.inputs = {i - 1};
    problem.operators.push_back(op);
  }
  const auto peak = [&](StreamSharing sharing) {
    StreamOptions options;
    options.sharing = sharing;
    return stream_safe(problem, options).peak;
  };
  EXPECT_EQ(peak(StreamSharing::kPaths), Bytes(20));
  EXPECT_EQ(peak(StreamSharing::kAncestors), Bytes(10) * count);
}

// Reachability, by repeated squaring of the relation.
class Relation {
 public:
  Relation(const Problem& problem, const Plan& plan) : count_(problem.op_count()) {
    before_.assign(count_, std::vector<bool>(count_, false));
    const auto edges = predecessors(problem);
    for (size_t i = 0; i < count_; ++i) {
      for (const OpId b : edges[i]) before_[b][i] = true;
    }
    for (size_t s = 0; s < count_ && plan.freedom == Freedom::kStreams; ++s) {
      for (size_t t = s + 1; t < count_; ++t) {
        const OpId a = plan.order[s], b = plan.order[t];
        if (problem.operators[a].stream == problem.operators[b].stream) before_[a][b] = true;
      }
    }
    for (size_t k = 0; k < count_; ++k) {
      for (size_t i = 0; i < count_; ++i) {
        for (size_t j = 0; j < count_; ++j) {
          if (before_[i][k] && before_[k][j]) before_[i][j] = true;
        }
      }
    }
  }
  bool before(OpId a, OpId b) const { return before_[a][b]; }

 private:
  size_t count_;
  std::vector<std::vector<bool>> before_;
};

// The definition, pair by pair; for plans without in-place pairs.
bool is_free(const Problem& problem, const Plan& plan) {
  const Relation relation(problem, plan);
  std::vector<std::vector<OpId>> users(plan.placements.size());
  std::vector<bool> starts(users.size()), kept(users.size());
  for (size_t k = 0; k < users.size(); ++k) {
    const Placement& p = plan.placements[k];
    if (p.workspace_of != kNone) users[k] = {p.workspace_of};
    for (size_t s = 0; s < problem.storages.size(); ++s) {
      if (p.storage == kNone || problem.root(static_cast<StorageId>(s)) != p.storage) continue;
      if (problem.storages[s].at_start) starts[k] = true;
      if (problem.storages[s].at_end) kept[k] = true;
      for (size_t i = 0; i < problem.op_count(); ++i) {
        for (const auto& list : {problem.operators[i].inputs, problem.operators[i].outputs}) {
          for (const StorageId id : list) {
            if (id == static_cast<StorageId>(s)) users[k].push_back(static_cast<OpId>(i));
          }
        }
      }
    }
  }
  const auto all_before = [&](size_t a, size_t b) {
    if (kept[a] || starts[b]) return false;
    for (const OpId x : users[a]) {
      for (const OpId y : users[b]) {
        if (!relation.before(x, y)) return false;
      }
    }
    return true;
  };
  for (size_t a = 0; a < users.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const Placement &p = plan.placements[a], &q = plan.placements[b];
      const bool share = p.size > Bytes(0) && q.size > Bytes(0) && p.end > p.begin &&
                         q.end > q.begin && p.offset < q.offset + q.size &&
                         q.offset < p.offset + p.size;
      if (share && !all_before(a, b) && !all_before(b, a)) return false;
    }
  }
  return true;
}

TEST(StreamsTest, RandomGraphsAreFree) {
  int less = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const Problem problem = several_streams(seed, 1 + static_cast<int>(seed % 30), 3);
    Bytes unshared;
    for (const Placement& p : lifetimes(problem, program_order(problem))) {
      if (p.end > p.begin) unshared += p.size;
    }
    for (const Freedom freedom : kFreedoms) {
      for (const StreamSharing sharing : kAll) {
        for (const bool in_place : {false, true}) {
          StreamOptions options;
          options.freedom = freedom;
          options.sharing = sharing;
          options.in_place = in_place;
          const Plan plan = stream_safe(problem, options);
          EXPECT_THAT(violations(problem, plan), IsEmpty()) << seed;
          EXPECT_EQ(plan.freedom, freedom);
          EXPECT_LE(plan.peak, unshared);
          if (!in_place) {
            EXPECT_TRUE(is_free(problem, plan)) << seed;
            less += plan.peak < unshared ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_GT(less, 300);
}

// For any offsets, the validator agrees with the definition.
TEST(StreamsTest, ValidatorAgreesWithTheDefinition) {
  std::mt19937_64 random(3);
  int free = 0, bound = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Problem problem = several_streams(seed, 2 + static_cast<int>(seed % 8), 2);
    problem.may_be_in_place.clear();
    Plan plan = assemble(problem, program_order(problem), false,
                         [](const auto& buffers) { return plan_layout(buffers).offsets; });
    plan.freedom = kFreedoms[seed % 2];
    if (seed % 3 == 0) {
      // Starts from a free plan and moves one storage a little.
      StreamOptions options;
      options.freedom = plan.freedom;
      plan = stream_safe(problem, options);
      if (!plan.placements.empty()) {
        Placement& moved = plan.placements[random() % plan.placements.size()];
        moved.offset = Offset(static_cast<int64_t>(random() % 12));
      }
      fill_figures(plan);
    }
    Plan serial = plan;
    serial.freedom = Freedom::kIssueOrder;
    if (!violations(problem, serial).empty()) continue;
    const bool is = is_free(problem, plan);
    EXPECT_EQ(violations(problem, plan).empty(), is) << seed;
    ++(is ? free : bound);
  }
  EXPECT_GT(free, 20);
  EXPECT_GT(bound, 20);
}

// A free plan holds in every order of execution that the streams allow.
TEST(StreamsTest, HoldsInEveryOrder) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Problem problem = several_streams(seed, 6, 2);
    for (const StreamSharing sharing : kAll) {
      StreamOptions options;
      options.sharing = sharing;
      options.in_place = false;
      const Plan plan = stream_safe(problem, options);
      Problem with_streams = problem;
      for (size_t i = 0; i < problem.op_count(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          if (problem.operators[i].stream == problem.operators[j].stream) {
            with_streams.operators[i].after.push_back(static_cast<OpId>(j));
          }
        }
      }
      for_each_order(with_streams, [&](const std::vector<OpId>& order) {
        Plan other;
        other.order = order;
        other.placements = lifetimes(problem, order);
        for (size_t k = 0; k < other.placements.size(); ++k) {
          other.placements[k].offset = plan.placements[k].offset;
        }
        fill_figures(other);
        EXPECT_THAT(violations(problem, other), IsEmpty()) << seed;
      });
    }
  }
}

// b and c come before the operator that waits for a's copy: they share bytes with each other,
// not with a. What a's copy fills, and d, may have a's bytes.
TEST(ParallelSafe, WhatIsCopiedOutLeavesItsBytesIdle) {
  using tidemark::testing::units;
  tidemark::testing::TraceBuilder record;
  const uint32_t a = record.call({}), b = record.call({});
  const uint32_t c = record.call({});
  record.run({a});
  const uint32_t d = record.call({}, 100, 2);
  const StepTrace trace = record.trace();
  const Schedule schedule = tidemark::testing::ScheduleBuilder(trace, /*placed=*/false)
                                .run(0)
                                .offload(a)
                                .run(1)
                                .free(b)
                                .run(2)
                                .free(c)
                                .copy_in(a)
                                .run(3)
                                .free(a)
                                .run(4)
                                .free(d)
                                .build();
  const PlanLimits limits = tidemark::testing::copy_within(4, 1000);
  const Schedule safe = parallel_safe(trace, limits, schedule);
  EXPECT_EQ(schedule_violations(trace, limits, safe), std::vector<std::string>());
  std::vector<int64_t> at;
  for (const Schedule::Block& block : safe.blocks) at.push_back(block.at.value() / (1 << 20));
  EXPECT_THAT(at, ::testing::ElementsAre(0, 1, 1, 0, 0));
  EXPECT_EQ(safe.peak, units(2));
  EXPECT_EQ(side_by_side(trace, limits, schedule).peak, units(6));
  EXPECT_EQ(side_by_side(trace, limits, schedule).time, safe.time);
}

}  // namespace
}  // namespace tidemark::planner
