#include "bench/paper_results.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <ctime>
#include <fstream>

#include "bench/first_line.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// FNV-1a of the running program. Its measurements depend on nothing else.
std::string program_hash() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  uint64_t hash = 0xcbf29ce484222325;
  std::array<char, 1 << 16> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    for (std::streamsize i = 0; i < file.gcount(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(block[static_cast<size_t>(i)])) * 0x100000001b3;
    }
  }
  return fmt::format("{:016x}", hash);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&now));
  return text.data();
}

// Writes one line per point.
std::string compact(const Json& json) {
  std::string text = "{";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    if (key == "rows") continue;
    text += fmt::format("{}\n {}: {}", first ? "" : ",", Json(key).dump(), value.dump());
    first = false;
  }
  text += ",\n \"rows\": {";
  first = true;
  for (const auto& [key, row] : json.at("rows").items()) {
    text += fmt::format("{}\n  {}: ", first ? "" : ",", Json(key).dump());
    first = false;
    if (!row.contains("points")) {
      text += row.dump();
      continue;
    }
    text += "{";
    for (const auto& [name, value] : row.items()) {
      if (name != "points") text += fmt::format("{}: {}, ", Json(name).dump(), value.dump());
    }
    text += "\"points\": [";
    for (size_t i = 0; i < row["points"].size(); ++i) {
      text += fmt::format("{}\n   {}", i == 0 ? "" : ",", row["points"][i].dump());
    }
    text += "]}";
  }
  return text + "\n }\n}\n";
}

}  // namespace

Results::Results(std::filesystem::path folder, std::string device, bool force)
    : folder_(std::move(folder)), device_(std::move(device)), force_(force) {
  std::filesystem::create_directories(folder_);
  // The program's checkout: the results may be for anywhere.
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string git = "git -C '" + program.parent_path().string() + "' ";
  commit_ = first_line_of(git + "rev-parse --short HEAD 2> /dev/null");
  // Ignores results, which the run itself changes.
  changed_ = first_line_of(git +
                           "status --porcelain --untracked-files=no -- :/ "
                           "':!/bench/results' 2> /dev/null") != kSaidNothing;
  program_ = program_hash();
}

std::vector<Task> Results::open(const Experiment& experiment) {
  Json& json = files_[experiment.file];
  std::ifstream file(path(experiment.file));
  if (file) json = Json::parse(file, nullptr, false);
  const bool usable = json.is_object() && json.contains("rows") && json["rows"].is_object();
  if (file && !usable && !force_) {
    throw DataError(path(experiment.file), "holds no results; --force replaces it");
  }
  if (force_ || !usable || json.value("commit", "") != commit_ ||
      json.value("program", "") != program_) {
    Json kept = Json::object();
    if (usable) {
      for (auto& [key, row] : json["rows"].items()) {
        if (!row.is_object()) continue;
        if (!row.contains("commit")) {
          row["commit"] = json.value("commit", "?") +
                          (json.value("changed_since_commit", false) ? " with changes" : "");
        }
        kept[key] = row;
      }
    }
    json = {{"about", experiment.about},
            {"device", device_},
            {"commit", commit_},
            {"program", program_},
            {"changed_since_commit", changed_},
            {"date", today()},
            {"rows", std::move(kept)}};
  }
  std::vector<Task> left;
  for (const Task& task : experiment.tasks) {
    const Json& rows = json["rows"];
    const bool done = rows.contains(task.key) && !rows[task.key].contains("commit");
    if (!done) left.push_back(task);
  }
  return left;
}

void Results::add(const Experiment& experiment, const std::string& key, Json row) {
  const std::lock_guard lock(mutex_);
  Json& json = files_[experiment.file];
  json["rows"][key] = std::move(row);
  // Rows follow the order of the tasks, whichever was done first.
  Json sorted = Json::object();
  for (const Task& task : experiment.tasks) {
    if (json["rows"].contains(task.key)) sorted[task.key] = json["rows"][task.key];
  }
  json["rows"] = sorted;
  const std::filesystem::path final = path(experiment.file), fresh = final.string() + ".part";
  std::ofstream file(fresh);
  file << compact(json);
  if (!file.flush()) throw DataError(fresh, "cannot be written");
  std::filesystem::rename(fresh, final);
}

}  // namespace tidemark
