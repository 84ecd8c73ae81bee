#include "bench/paper_results.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

class PaperResults : public ::testing::Test {
 protected:
  PaperResults() { std::filesystem::remove_all(folder_); }
  ~PaperResults() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> left(bool force = false) const {
    Results results(folder_, "sim:x", force);
    std::vector<std::string> keys;
    for (const Task& task : results.open(experiment_)) keys.push_back(task.key);
    return keys;
  }
  Json file() const { return Json::parse(std::ifstream(folder_ / "table.json")); }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      ("paper_results_" +
       std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  const Experiment experiment_{"table", "what it is", {{"a", {}}, {"b", {}}, {"c", {}}}};
};

using Keys = std::vector<std::string>;

TEST_F(PaperResults, GoOnWhereTheyWereStopped) {
  EXPECT_EQ(left(), (Keys{"a", "b", "c"}));
  {
    Results results(folder_, "sim:x", false);
    results.open(experiment_);
    results.add(experiment_, "c", {{"ms", 3}});
    results.add(experiment_, "a", {{"need", 1}, {"points", {{{"ms", 1}}, {{"ms", 2}}}}});
  }
  EXPECT_EQ(left(), Keys{"b"});
  EXPECT_EQ(left(/*force=*/true), (Keys{"a", "b", "c"}));
  const Json json = file();
  EXPECT_EQ(json["device"], "sim:x");
  EXPECT_EQ(json["rows"].begin().key(), "a");  // in the experiment's order
  EXPECT_EQ(json["rows"]["a"]["points"][1]["ms"], 2);
  EXPECT_EQ(json["rows"]["a"]["need"], 1);
  EXPECT_EQ(json["rows"]["c"]["ms"], 3);
}

TEST_F(PaperResults, OfAnotherCommitAreKeptAndSaySo) {
  {
    Results results(folder_, "sim:x", false);
    results.open(experiment_);
    results.add(experiment_, "a", {{"ms", 1}});
    results.add(experiment_, "b", {{"ms", 2}});
  }
  Json json = file();
  json["program"] = "another";
  json["commit"] = "abc";
  json["changed_since_commit"] = false;
  std::ofstream(folder_ / "table.json") << json.dump();
  {
    Results results(folder_, "sim:x", false);
    EXPECT_EQ(results.open(experiment_).size(), 3u);
    results.add(experiment_, "b", {{"ms", 3}});
  }
  EXPECT_EQ(file()["rows"]["a"], (Json{{"ms", 1}, {"commit", "abc"}}));
  EXPECT_EQ(file()["rows"]["b"], (Json{{"ms", 3}}));
  EXPECT_EQ(left(), (Keys{"a", "c"}));
}

TEST_F(PaperResults, OfAnotherProgramDoNotCount) {
  {
    Results results(folder_, "sim:x", false);
    results.open(experiment_);
    results.add(experiment_, "a", {{"ms", 1}});
  }
  Json json = file();
  json["program"] = "another";
  std::ofstream(folder_ / "table.json") << json.dump();
  EXPECT_EQ(left(), (Keys{"a", "b", "c"}));
}

TEST_F(PaperResults, ThatAreBrokenAreNotReplacedSilently) {
  std::filesystem::create_directories(folder_);
  for (const char* text : {"{ \"rows\": ", "[]", "{}"}) {
    std::ofstream(folder_ / "table.json") << text;
    EXPECT_THROW(left(), DataError) << text;
    EXPECT_EQ(left(/*force=*/true).size(), 3u);
  }
}

}  // namespace
}  // namespace tidemark
