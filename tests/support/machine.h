// Settings that tests take from the machine and from the person who runs them
// (tests/machines/README.md).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "ops/kernels/cpu_isa.h"
#include "tests/support/device_under_test.h"

namespace tidemark::testing {

// Threads that kernels compute with: OMP_NUM_THREADS, or 2.
inline int test_threads() {
  const char* const wanted = std::getenv("OMP_NUM_THREADS");
  return wanted ? std::max(1, std::atoi(wanted)) : 2;
}

// oneDNN multiplies bfloat16 only with AVX-512.
inline bool onednn_has_bfloat16() {
  return best_for_loops(cpu_facts()) == InstructionSet::kAvx512;
}
// Whether products of bfloat16 can be computed here. TIDEMARK_TEST_OWN_PRODUCTS: set by
// programs that put other kernels in place of oneDNN's, except for convolutions.
inline bool has_bfloat16() {
  return device_under_test() != "cpu" || onednn_has_bfloat16() ||
         std::getenv("TIDEMARK_TEST_OWN_PRODUCTS") != nullptr;
}
#define TIDEMARK_SKIP_WITHOUT_BFLOAT16() \
  if (!::tidemark::testing::has_bfloat16()) GTEST_SKIP() << "no AVX-512, so no bfloat16"

}  // namespace tidemark::testing
