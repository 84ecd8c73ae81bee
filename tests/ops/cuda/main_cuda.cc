// Runs a test of operators on the first GPU; where there is none, skips it (exit status 77), or
// fails if TIDEMARK_REQUIRE_GPU is set.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "ops/register.h"
#include "runtime/device/device.h"
#include "tests/support/device_under_test.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  try {
    tidemark::make_device("cuda");
  } catch (const std::exception& error) {
    std::printf("SKIPPED: no GPU can be used: %s\n", error.what());
    return std::getenv("TIDEMARK_REQUIRE_GPU") ? 1 : 77;
  }
  tidemark::testing::device_under_test() = "cuda";
  tidemark::register_cuda_kernels();
  return RUN_ALL_TESTS();
}
