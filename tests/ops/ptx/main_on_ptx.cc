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

// Each selection of tests has a file of its own, as several may run side by side.
void write_executed(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  const char* const folder = std::getenv("TIDEMARK_PTX_EXECUTED");
  std::ofstream out(std::string(folder ? folder : TIDEMARK_PTX_EXECUTED) + "/" + name + ".txt");
  for (const std::string& kernel : tidemark::ptx::Library::shipped().executed()) {
    out << kernel << "\n";
  }
}

// Leaves out tests that repeat the same kernels under other settings of the CPU or of the
// planner, unless TIDEMARK_PTX_ALL is set.
std::string selection() {
  std::string filter = GTEST_FLAG_GET(filter);
  if (std::getenv("TIDEMARK_PTX_ALL")) return filter;
  filter += filter.find('-') == std::string::npos ? "-" : ":";
  return filter + "*ThreadsDoNotMatter*:*AnyNumberOfThreads*:AttentionTest.BudgetsDoNotMatter";
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  setenv("TIDEMARK_TEST_OWN_PRODUCTS", "1", 1);  // gemm_on_host.cc
  tidemark::ptx::Library::shipped().report_to(
      [](const std::string& violation) { ADD_FAILURE() << violation; });
  tidemark::register_guarded_kernels();
  const std::string suite = GTEST_FLAG_GET(filter);
  GTEST_FLAG_SET(filter, selection());
  const int result = RUN_ALL_TESTS();
  if (result == 0) write_executed(suite);
  return result;
}
