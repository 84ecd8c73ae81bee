// The search against oracles that are plain formulas, and that fail on purpose.
#include "examples/common/batch_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark {
namespace {

using ::testing::ElementsAre;

// Without management 100 + 10 a batch, with it 50 + 2 a batch.
struct Formula {
  int64_t fails_above = 1 << 30;  // in earnest
  std::vector<int64_t> proven{};

  BatchOracle oracle(int64_t budget) {
    BatchOracle oracle;
    oracle.budget = [budget](int64_t) { return Bytes(budget); };
    oracle.unmanaged_peak = [](int64_t batch) { return Bytes(100 + 10 * batch); };
    oracle.need = [](int64_t batch) {
      return BatchNeed{Bytes(100 + 10 * batch), Bytes(50 + 2 * batch)};
    };
    oracle.prove = [this](int64_t batch) {
      proven.push_back(batch);
      BatchProof proof{.done = batch <= fails_above, .steps = 7};
      if (!proof.done) proof.failure = "too much";
      return proof;
    };
    return oracle;
  }
};

TEST(BatchSearchTest, FindsTheLastBatchThatFits) {
  for (int64_t budget = 52; budget < 400; ++budget) {
    Formula formula;
    const BatchAnswer answer = find_largest_batch({}, formula.oracle(budget));
    EXPECT_EQ(answer.batch, (budget - 50) / 2) << budget;
    EXPECT_EQ(answer.without, budget < 110 ? 0 : (budget - 100) / 10) << budget;
    EXPECT_THAT(formula.proven, ElementsAre(answer.batch));
    EXPECT_EQ(answer.need.minimum, Bytes(50 + 2 * answer.batch));
  }
}

TEST(BatchSearchTest, ALargerBatchMayLeaveLessToTheArena) {
  Formula formula;
  BatchOracle oracle = formula.oracle(0);
  oracle.budget = [](int64_t batch) { return Bytes(250 - 2 * batch); };
  const BatchAnswer answer = find_largest_batch({}, oracle);
  EXPECT_EQ(answer.batch, 50);    // 50 + 2 b = 250 - 2 b
  EXPECT_EQ(answer.without, 12);  // 100 + 10 b <= 250 - 2 b
}

TEST(BatchSearchTest, TriesNoMoreThanItMay) {
  for (const int64_t largest : {1, 2, 3, 7, 8, 9}) {
    Formula formula;
    const BatchAnswer answer = find_largest_batch({.largest = largest}, formula.oracle(10'000));
    EXPECT_EQ(answer.batch, largest);
    EXPECT_EQ(answer.without, largest);
    for (const BatchTrial& trial : answer.trials) EXPECT_LE(trial.batch, largest);
  }
}

TEST(BatchSearchTest, SaysWhatBatchOneWouldNeed) {
  Formula formula;
  const BatchAnswer answer = find_largest_batch({}, formula.oracle(51));
  EXPECT_EQ(answer.batch, 0);
  EXPECT_EQ(answer.least, Bytes(52));
  EXPECT_TRUE(formula.proven.empty());
}

TEST(BatchSearchTest, ABatchThatFailsIsFollowedBySmallerOnes) {
  Formula formula{.fails_above = 90};
  const BatchAnswer answer = find_largest_batch({}, formula.oracle(250));
  EXPECT_THAT(formula.proven, ElementsAre(100, 97, 94, 92, 90));
  EXPECT_EQ(answer.batch, 90);
  size_t failed = 0;
  for (const BatchTrial& trial : answer.trials) {
    if (trial.kind != BatchTrial::Kind::kProof) continue;
    EXPECT_EQ(trial.fits, trial.batch <= 90);
    failed += trial.proof.failure == "too much";
  }
  EXPECT_EQ(failed, 4u);
}

TEST(BatchSearchTest, NothingCanBeProven) {
  Formula formula{.fails_above = 0};
  const BatchAnswer answer = find_largest_batch({}, formula.oracle(60));
  EXPECT_EQ(answer.batch, 0);
  EXPECT_THAT(formula.proven, ElementsAre(5, 4, 3, 2, 1));
}

TEST(BatchSearchTest, WhatIsTooSlowDoesNotFit) {
  Formula formula;
  BatchOracle oracle = formula.oracle(250);
  oracle.speed = [](int64_t batch, int64_t without) {
    EXPECT_EQ(without, 15);
    return 1.0 - static_cast<double>(batch) / 200;
  };
  const BatchAnswer answer = find_largest_batch({.least_speed = 0.75}, oracle);
  EXPECT_EQ(answer.batch, 50);
  EXPECT_EQ(answer.need.speed, 0.75);
}

TEST(BatchSearchTest, WithoutManagementWhatFitsUntouchedIsTheAnswer) {
  Formula formula;
  std::vector<int64_t> seen;
  BatchOracle oracle = formula.oracle(130);
  oracle.on_trial = [&](const BatchTrial& trial) {
    EXPECT_NE(trial.kind, BatchTrial::Kind::kDryRun);
    seen.push_back(trial.batch);
  };
  const BatchAnswer answer = find_largest_batch({.managed = false}, oracle);
  EXPECT_EQ(answer.batch, 3);
  EXPECT_THAT(seen, ElementsAre(1, 2, 4, 3, 3));
}

}  // namespace
}  // namespace tidemark
