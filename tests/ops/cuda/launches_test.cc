// What kernels report to the CUDA device (runtime/device/cuda/launches.h).
#include "runtime/device/cuda/launches.h"

#include <gtest/gtest.h>

#include <vector>

#include "ops/optimizer/optimizer.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

KernelRun momentum_step(bool first) {
  const Array x = Array::random({100}, 1);
  return run_kernel_with({.scalars = {0.1, 0.9, 0, 0, 0, first ? 1.0 : 0.0}}, kSgdMomentumStep,
                         {x, x, x});
}

TEST(Launches, AKernelThatNumbersChooseIsReportedBeforeItsFirstLaunch) {
  LaunchReport report;
  int loads = 0;
  report.before_loading = [&] { ++loads; };
  const Reporting reporting(report);
  momentum_step(true);
  EXPECT_EQ(loads, 1);
  momentum_step(true);
  EXPECT_EQ(loads, 1);
  momentum_step(false);
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(report.launches, 3);
}

TEST(Launches, AKernelThatMayNotBeLoadedIsNotLaunched) {
  LaunchReport report;
  report.before_loading = [] { throw DeviceError("host work failed"); };
  const Reporting reporting(report);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(momentum_step(true), DeviceError);
  EXPECT_EQ(report.launches, 0);
}

TEST(Launches, ClearedMemoryCounts) {
  LaunchReport report;
  report.before_loading = [] {};
  const Reporting reporting(report);
  const Array labels{Shape{4}, std::vector<float>(8)};  // of int64
  run_kernel_with({.dtypes = {DType::kFloat32, DType::kInt64}}, kAccuracyCount,
                  {Array::random({4, 10}, 1), labels});
  EXPECT_EQ(report.launches, 2);
}

}  // namespace
}  // namespace tidemark::testing
