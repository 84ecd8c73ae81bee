#include <gtest/gtest.h>

#include "tests/ops/ptx/guarded_kernels.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  tidemark::register_guarded_kernels();
  return RUN_ALL_TESTS();
}
