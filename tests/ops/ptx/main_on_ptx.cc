// Runs a test of operators on the CPU device with CUDA's kernels, interpreted, instead of the
// CPU's. Then notes which kernels ran, for check_executed.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/ops/ptx/guarded_kernels.h"
#include "tests/support/ptx/library.h"

namespace {

// One file for each selection of tests, so that programs that run side by side do not meet.
void write_executed(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  std::ofstream out(std::string(TIDEMARK_PTX_EXECUTED) + "/" + name + ".txt");
  for (const std::string& kernel : tidemark::ptx::Library::shipped().executed()) {
    out << kernel << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  setenv("TIDEMARK_TEST_OWN_PRODUCTS", "1", 1);  // gemm_on_host.cc
  tidemark::ptx::Library::shipped().report_to(
      [](const std::string& violation) { ADD_FAILURE() << violation; });
  tidemark::register_guarded_kernels();
  const int result = RUN_ALL_TESTS();
  if (result == 0) write_executed(GTEST_FLAG_GET(filter));
  return result;
}
