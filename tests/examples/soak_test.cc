#include "examples/common/soak.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

constexpr double kMiB = 1 << 20;

SoakReport report(int64_t steps, double first_own, double middle_own, double last_own) {
  SoakReport report;
  report.steps = steps;
  report.first.own = first_own * kMiB;
  report.middle.own = middle_own * kMiB;
  report.last.own = last_own * kMiB;
  return report;
}

TEST(SoakReport, PoolsThatFillAtFirstAreNoLeak) {
  EXPECT_TRUE(report(211, 35, 110, 124).flat());
  EXPECT_FALSE(report(211, 35, 110, 220).flat());
}

TEST(SoakReport, AFewStepsSayNothingOfTheProcess) {
  const SoakReport few = report(20, 30, 40, 400);
  EXPECT_FALSE(few.long_enough());
  EXPECT_TRUE(few.flat());
}

TEST(SoakReport, StoragesThatPileUpAreSeenAtOnce) {
  SoakReport piling = report(20, 30, 30, 30);
  piling.first.kept = 100;
  piling.last.kept = 120;
  EXPECT_FALSE(piling.flat());
}

}  // namespace
}  // namespace tidemark
