#include "bench/run_main.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tidemark {
namespace {

TEST(RunMain, GivesTheProjectsExitCodes) {
  const auto code_of = [](int (*run)(int, char**)) {
    return run_main("program", run, 0, nullptr, 1);
  };
  EXPECT_EQ(code_of([](int, char**) { return 0; }), 0);
  EXPECT_EQ(code_of([](int, char**) { return 3; }), 3);
  EXPECT_EQ(code_of([](int, char**) { return 106; }), 2) << "CLI11's, a flag is missing";
  EXPECT_EQ(code_of([](int, char**) -> int { throw std::runtime_error("none"); }), 1);
}

}  // namespace
}  // namespace tidemark
