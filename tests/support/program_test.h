// Runs programs as scripts do: exit code, output, and the JSON file.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tidemark::testing {

using Json = nlohmann::json;

struct ProgramResult {
  int code = -1;
  std::string out, error;
  Json json;  // null if none was written
};

// Each test has an empty folder of its own.
class ProgramTest : public ::testing::Test {
 protected:
  using Json = nlohmann::json;
  using Result = ProgramResult;

  explicit ProgramTest(std::string program) : program_(std::move(program)) {}

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "program_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Returns the path of the file.
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
    return path(name);
  }
  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  ProgramResult run(const std::string& arguments) const {
    const std::filesystem::path json = folder_ / "run.json", out = folder_ / "out",
                                error = folder_ / "error";
    std::filesystem::remove(json);
    const std::string command = program_ + " " + arguments + " --json " + json.string() +
                                " > " + out.string() + " 2> " + error.string();
    ProgramResult result;
    const int status = std::system(command.c_str());
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.out = read(out);
    result.error = read(error);
    if (std::filesystem::exists(json)) result.json = Json::parse(read(json));
    return result;
  }

  static std::vector<std::string> loss_bits(const Json& json) {
    std::vector<std::string> bits;
    for (const Json& step : json.at("steps")) bits.push_back(step.at("loss_bits"));
    return bits;
  }

  // `actual` succeeded, and its losses and parameters are those of `expected`, to the bit.
  static void expect_same_training(const ProgramResult& actual, const ProgramResult& expected) {
    ASSERT_EQ(actual.code, 0) << actual.error;
    EXPECT_EQ(loss_bits(actual.json), loss_bits(expected.json));
    EXPECT_EQ(actual.json.at("params_checksum"), expected.json.at("params_checksum"));
  }

  // The same, whose evaluation is the same too, within the budget.
  static void expect_same_within_budget(const ProgramResult& actual,
                                        const ProgramResult& expected) {
    expect_same_training(actual, expected);
    EXPECT_EQ(actual.json.at("eval"), expected.json.at("eval"));
    EXPECT_LE(actual.json.at("peak_reserved_bytes"), actual.json.at("budget_bytes"));
  }

  // The same for train(flags), under each of the flags `memory` and in the smallest budget.
  template <class Train>
  static void expect_same_under(const Train& train, const ProgramResult& free,
                                std::vector<std::string> memory) {
    ASSERT_EQ(free.code, 0) << free.error;
    ASSERT_EQ(loss_bits(free.json).size(), 3u);
    EXPECT_EQ(free.json.at("peak_reserved_bytes"), free.json.at("unmanaged_peak_bytes"));
    const auto minimum = free.json.at("minimum_budget_bytes").get<int64_t>();
    memory.push_back("--budget " + std::to_string(minimum));
    for (const std::string& flags : memory) {
      SCOPED_TRACE(flags);
      expect_same_within_budget(train(flags), free);
    }
  }

  // So many steps on the simulator, which computes no values.
  static void expect_simulated(const ProgramResult& run, size_t steps) {
    ASSERT_EQ(run.code, 0) << run.error;
    EXPECT_TRUE(run.json.at("params_checksum").is_null());
    ASSERT_EQ(run.json.at("steps").size(), steps);
  }

  // The number that follows `before` in a message; -1: it has no `before`.
  static int64_t number_after(const std::string& before, const std::string& message) {
    const size_t at = message.find(before);
    if (at == std::string::npos) return -1;
    return std::stoll(message.substr(at + before.size()));
  }

  // A dry run says the smallest budget, and a byte less is refused before training.
  template <class Train>
  static void expect_minimum_is_exact(const Train& train) {
    using ::testing::HasSubstr;
    const ProgramResult dry = train("--dry-run");
    ASSERT_EQ(dry.code, 0) << dry.error;
    const auto minimum = dry.json.at("minimum_budget_bytes").get<int64_t>();
    EXPECT_THAT(dry.out, HasSubstr(std::to_string(minimum)));
    const ProgramResult refused = train("--budget " + std::to_string(minimum - 1));
    EXPECT_EQ(refused.code, 3);
    EXPECT_THAT(refused.error, HasSubstr(std::to_string(minimum)));
    EXPECT_TRUE(refused.json.at("steps").empty());
    EXPECT_EQ(refused.json.at("minimum_budget_bytes"), minimum);
    EXPECT_EQ(refused.json.at("budget_bytes"), minimum - 1);
  }

  std::filesystem::path folder_;

 private:
  std::string program_;
};

}  // namespace tidemark::testing
