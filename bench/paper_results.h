// The JSON files of the papers' experiments, so that a run can be stopped and go on: a cell
// that is there is not measured again, if it was made by the same program at the same commit.
//
// Threads: open() on one; add() on any.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tidemark {

using Json = nlohmann::ordered_json;

// One cell of an experiment: what it is called in the file, and what it takes to find it.
struct Task {
  std::string key;
  std::function<Json()> run;
};
struct Experiment {
  std::string file;  // without .json
  std::string about;
  std::vector<Task> tasks;
};

class Results {
 public:
  // `device` is noted in the files. `force`: nothing that is there counts.
  Results(std::filesystem::path folder, std::string device, bool force);

  // Those of its tasks that are to be done.
  std::vector<Task> open(const Experiment& experiment);
  // Writes the file anew, whole or not at all. Throws DataError.
  void add(const Experiment& experiment, const std::string& key, Json row);

 private:
  std::filesystem::path path(const std::string& name) const {
    return folder_ / (name + ".json");
  }

  std::filesystem::path folder_;
  std::string device_;
  bool force_;
  std::string commit_;
  bool changed_ = false;  // the tree is not that of the commit
  std::string program_;   // a hash: what it measures depends on nothing else
  std::map<std::string, Json> files_;
  std::mutex mutex_;
};

}  // namespace tidemark
