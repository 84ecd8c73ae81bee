// A folder that stands for the root of a file system, for tests that write into /proc and /sys.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace tidemark::testing {

class FakeRootTest : public ::testing::Test {
 protected:
  FakeRootTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "root_XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp");
    root_ = pattern;
  }
  ~FakeRootTest() override { std::filesystem::remove_all(root_); }

  // `path` is below the root, such as "proc/self/cgroup".
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }

  std::filesystem::path root_;
};

}  // namespace tidemark::testing
