// The JSON files of the papers' experiments, which let a stopped run resume: a cell is not
// measured again if the same program at the same commit has already measured it. What other
// commits or programs measured stays until it is measured again; each such row says its
// "commit".
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

// One cell of an experiment: its key in the file, and the function that measures it.
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
  // `device` is recorded in the files. `force`: measure all again. Throws
  // std::filesystem::filesystem_error if the folder is not there and cannot be made.
  Results(std::filesystem::path folder, std::string device, bool force);

  // Returns the experiment's tasks that still have to be run. Throws DataError if its file
  // holds no results.
  std::vector<Task> open(const Experiment& experiment);
  // Rewrites the file atomically. Throws DataError.
  void add(const Experiment& experiment, const std::string& key, Json row);

 private:
  std::filesystem::path path(const std::string& name) const {
    return folder_ / (name + ".json");
  }

  std::filesystem::path folder_;
  std::string device_;
  bool force_;
  std::string commit_;
  bool changed_ = false;  // the checkout differs from its commit
  std::string program_;   // a hash of all that its measurements depend on
  std::map<std::string, Json> files_;
  std::mutex mutex_;
};

}  // namespace tidemark
