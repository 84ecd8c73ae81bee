// Each rule, broken by one event.
#include "runtime/planner/remat/remat_validator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/errors.h"
#include "tests/runtime/planner/remat/small_problems.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::HasSubstr;

// 0 -> 1 (in place over 0 as variant 1) -> 2 rides on 1's variant 1 -> 3 once, adds 5 fixed
// bytes.
Problem features() {
  Problem problem;
  problem.fixed_bytes = 100;
  problem.base_time = 4;
  problem.nodes = {make_node(1, 10, {}), make_node(1, 20, {0}), make_node(1, 1, {1}),
                   make_node(1, 0, {1})};
  problem.nodes[1].variants.push_back(problem.nodes[1].variants[0]);
  problem.nodes[1].variants[1].overwrites = 0;
  problem.nodes[2].rider_of = 1;
  problem.nodes[2].variants[0].with = {{1}};
  problem.nodes[3].once = true;
  problem.nodes[3].adds_fixed = 5;
  return problem;
}

std::string fault(const Problem& problem, const std::vector<Event>& events) {
  return validate(problem, events).fault;
}

TEST(RematValidator, ValidScheduleHasItsPeakAndTime) {
  const Verdict verdict = validate(
      features(), {run(0), run(1, 1), drop(1), run(0), run(1, 1), run(2), drop(2), run(3)});
  EXPECT_EQ(verdict.fault, "");
  EXPECT_EQ(verdict.peak, 130);  // 100 fixed, 10 of node 0, 20 of node 1
  EXPECT_DOUBLE_EQ(verdict.time, 6);
}

TEST(RematValidator, FixedBytesAndWorkspaceCount) {
  Problem problem = features();
  problem.nodes[3].variants[0].workspace = 40;
  // 100 + 5 fixed, 10 + 20 live, 40 workspace.
  EXPECT_EQ(validate(problem, {run(0), run(1), run(3)}).peak, 175);
  problem.nodes[3].variants[0].workspace = -40;
  EXPECT_EQ(validate(problem, {run(0), run(1), run(3)}).peak, 130);
}

TEST(RematValidator, EachBrokenRuleIsFound) {
  const Problem problem = features();
  EXPECT_THAT(fault(problem, {run(7)}), HasSubstr("event 0: there is no such node"));
  EXPECT_THAT(fault(problem, {run(0, 1)}), HasSubstr("no such variant"));
  EXPECT_THAT(fault(problem, {run(0, -2)}), HasSubstr("no such variant"));
  EXPECT_THAT(fault(problem, {run(1)}), HasSubstr("input 0 is not live"));
  EXPECT_THAT(fault(problem, {run(0), run(0)}), HasSubstr("event 1: computed while live"));
  EXPECT_THAT(fault(problem, {run(0), drop(1)}), HasSubstr("freed, but not live"));
  EXPECT_THAT(fault(problem, {run(0), run(1, 1), drop(0)}), HasSubstr("freed, but not live"));
  EXPECT_THAT(fault(problem, {run(0), run(1)}), HasSubstr("required, but never computed"));
  EXPECT_THAT(fault(problem, {run(0), run(1), run(3), drop(3), run(3)}),
              HasSubstr("may run only once"));
  EXPECT_THAT(fault(problem, {run(0), run(1), run(2)}), HasSubstr("does not match"));
  EXPECT_THAT(fault(problem, {run(0), run(1, 1), run(3), run(2)}),
              HasSubstr("must directly follow"));
}

TEST(RematValidator, FreesMayStandBetweenAParentAndItsRider) {
  EXPECT_EQ(fault(features(), {run(0), run(1, 1), run(2), drop(2), run(3)}), "");
  Problem problem = features();
  problem.nodes[2].variants[0].inputs = {};
  EXPECT_THAT(fault(problem, {run(0), run(1, 1), drop(1), run(2)}),
              HasSubstr("required, but never computed"));
}

TEST(RematValidator, FirstAndLaterRuns) {
  Problem problem = toy();
  problem.nodes[0].variants[0].when = When::kFirst;
  EXPECT_THAT(fault(problem, {run(0), drop(0), run(0)}),
              HasSubstr("variant for the first run only"));
  problem.nodes[0].variants[0].when = When::kAgain;
  EXPECT_THAT(fault(problem, {run(0)}), HasSubstr("variant for later runs only"));
}

TEST(RematValidator, NothingRunsAfterWhatComesAfterAllItsRuns) {
  Problem problem = toy();
  problem.nodes[4].after = {1, 2};
  EXPECT_EQ(fault(problem, {run(0), run(1), run(2), drop(2), run(2), run(3), run(4), run(5)}),
            "");
  EXPECT_THAT(fault(problem, {run(0), run(1), run(2), run(3), run(4), drop(2), run(2)}),
              HasSubstr("a node that comes after all its runs has run: node 2"));
  problem.nodes[2].after = {4};
  EXPECT_THROW(check_problem(problem), UsageError) << "each after the other";
  problem = features();
  problem.nodes[2].after = {0};
  EXPECT_THROW(check_problem(problem), UsageError) << "a rider";
}

TEST(RematValidator, OverwrittenValueMustBeLive) {
  Problem problem = features();
  problem.nodes[1].variants[1].inputs = {};
  EXPECT_THAT(fault(problem, {run(1, 1)}), HasSubstr("overwrites a value that is not live"));
}

}  // namespace
}  // namespace tidemark::planner::remat
