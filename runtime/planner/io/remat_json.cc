#include "runtime/planner/io/remat_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"

namespace tidemark::planner {
namespace {

using Json = nlohmann::json;
using remat::NodeId;

// Typed access to values, with the place in the file as the errors' text.
class FieldReader {
 public:
  explicit FieldReader(std::string file) : file_(std::move(file)) {}

  [[noreturn]] void fail(const std::string& place, const std::string& what) const {
    throw DataError(file_, place.empty() ? what : place + ": " + what);
  }
  Json parse(const std::string& text) const {
    Json json = parse_located<Json>(file_, text);
    if (!json.is_object()) fail("", "not an object");
    return json;
  }
  const Json& list(const Json& value, const std::string& place) const {
    if (!value.is_array()) fail(place, "not an array");
    return value;
  }
  std::string text(const Json& value, const std::string& place) const {
    if (!value.is_string()) fail(place, "not a string");
    return value;
  }
  bool flag(const Json& value, const std::string& place) const {
    if (!value.is_boolean()) fail(place, "must be true or false");
    return value;
  }
  int64_t whole(const Json& value, const std::string& place) const {
    // Some writers put bytes as 1.5e9.
    if (value.is_number_float()) {
      const double number = value;
      if (std::abs(number) < 9e15 && number == std::floor(number)) {
        return static_cast<int64_t>(number);
      }
    }
    const bool is_whole = value.is_number_integer() &&
                          (!value.is_number_unsigned() ||
                           value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
    if (!is_whole) fail(place, "not a whole number below 2^63");
    return value;
  }
  int32_t index(const Json& value, const std::string& place) const {
    const int64_t number = whole(value, place);
    if (number < 0 || number > INT32_MAX) {
      fail(place, std::to_string(number) + " is not an index");
    }
    return static_cast<int32_t>(number);
  }
  double number(const Json& value, const std::string& place) const {
    if (!value.is_number()) fail(place, "not a number");
    return value;
  }

 private:
  std::string file_;
};

class ProblemReader {
 public:
  explicit ProblemReader(const std::string& file) : read_(file) {}

  remat::Problem run(const std::string& text) {
    const Json json = read_.parse(text);
    if (!json.contains("format") || json["format"] != "remat-1") {
      read_.fail("format", "not \"remat-1\"");
    }
    remat::Problem problem;
    if (json.contains("name")) problem.name = read_.text(json["name"], "name");
    if (json.contains("unit_time")) {
      problem.unit_time = read_.text(json["unit_time"], "unit_time");
    }
    problem.fixed_bytes =
        json.contains("fixed_bytes") ? read_.whole(json["fixed_bytes"], "fixed_bytes") : 0;
    if (!json.contains("nodes")) read_.fail("", "no 'nodes'");
    const Json& nodes = read_.list(json["nodes"], "nodes");
    for (size_t i = 0; i < nodes.size(); ++i) {
      problem.nodes.push_back(node(nodes[i], "nodes[" + std::to_string(i) + "]"));
    }
    problem.base_time =
        json.contains("base_time") ? read_.number(json["base_time"], "base_time") : sum_;
    if (!json.contains("base_time") && sum_ == 0 && !problem.nodes.empty()) {
      read_.fail("", "no 'base_time', and the sum of all 'time', which it would be, is 0");
    }
    try {
      check_problem(problem);
    } catch (const UsageError& error) {
      read_.fail("", error.what());
    }
    return problem;
  }

 private:
  // The value of `key` in the variant, or else in the node; null if neither has it.
  static const Json& either(const Json& variant, const Json& node, const char* key) {
    static const Json null;
    if (variant.contains(key)) return variant[key];
    return node.contains(key) ? node[key] : null;
  }

  remat::Node node(const Json& json, const std::string& place) {
    if (!json.is_object()) read_.fail(place, "not an object");
    remat::Node node;
    if (json.contains("name")) node.name = read_.text(json["name"], place + ".name");
    if (!json.contains("bytes")) read_.fail(place, "no 'bytes'");
    node.bytes = read_.whole(json["bytes"], place + ".bytes");
    if (json.contains("time")) sum_ += read_.number(json["time"], place + ".time");
    const auto flag = [&](const char* key) {
      return json.contains(key) && read_.flag(json[key], place + "." + key);
    };
    node.required = flag("required");
    node.once = flag("once");
    if (json.contains("adds_fixed")) {
      node.adds_fixed = read_.whole(json["adds_fixed"], place + ".adds_fixed");
    }
    if (json.contains("rider_of") && !json["rider_of"].is_null()) {
      node.rider_of = read_.index(json["rider_of"], place + ".rider_of");
    }
    if (json.contains("after") && !json["after"].is_null()) {
      node.after = indices(json["after"], place + ".after");
    }
    if (!json.contains("variants")) {
      node.variants.push_back(variant(Json::object(), json, place));
      return node;
    }
    const Json& variants = read_.list(json["variants"], place + ".variants");
    for (size_t v = 0; v < variants.size(); ++v) {
      const std::string at = place + ".variants[" + std::to_string(v) + "]";
      if (!variants[v].is_object()) read_.fail(at, "not an object");
      node.variants.push_back(variant(variants[v], json, at));
    }
    return node;
  }

  remat::Variant variant(const Json& json, const Json& node, const std::string& place) const {
    remat::Variant variant;
    if (json.contains("name") && json["name"].is_string()) variant.name = json["name"];
    const Json& time = either(json, node, "time");
    if (time.is_null()) read_.fail(place, "no 'time'");
    variant.time = read_.number(time, place + ".time");
    const Json& workspace = either(json, node, "workspace");
    if (!workspace.is_null()) {
      variant.workspace = read_.whole(workspace, place + ".workspace");
    }
    const Json& inputs = either(json, node, "inputs");
    if (!inputs.is_null()) variant.inputs = indices(inputs, place + ".inputs");
    const Json& overwrites = either(json, node, "overwrites");
    if (!overwrites.is_null()) {
      variant.overwrites = read_.index(overwrites, place + ".overwrites");
    }
    const Json& when = either(json, node, "when");
    if (!when.is_null() && when != "any") {
      if (when != "first" && when != "again") {
        read_.fail(place + ".when", "must be \"first\" or \"again\"");
      }
      variant.when = when == "first" ? remat::When::kFirst : remat::When::kAgain;
    }
    if (json.contains("with") && !json["with"].is_null()) {
      variant.with = indices(json["with"], place + ".with");
    }
    return variant;
  }

  // Ascending, each once: what is listed twice is needed all the same.
  std::vector<int32_t> indices(const Json& json, const std::string& place) const {
    std::vector<int32_t> result;
    const Json& list = read_.list(json, place);
    for (size_t k = 0; k < list.size(); ++k) {
      result.push_back(read_.index(list[k], place + "[" + std::to_string(k) + "]"));
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  FieldReader read_;
  double sum_ = 0;
};

}  // namespace

remat::Problem parse_remat_problem(const std::string& text, const std::string& file) {
  return ProblemReader(file).run(text);
}

std::vector<remat::Event> parse_remat_schedule(const std::string& text,
                                               const std::string& file) {
  const FieldReader read(file);
  const Json json = read.parse(text);
  if (!json.contains("schedule")) read.fail("", "no 'schedule'");
  const Json& list = read.list(json["schedule"], "schedule");
  std::vector<remat::Event> events;
  for (size_t e = 0; e < list.size(); ++e) {
    const std::string place = "schedule[" + std::to_string(e) + "]";
    const Json& entry = read.list(list[e], place);
    if (entry.size() < 2 || entry.size() > 3) read.fail(place, "not two or three values");
    const bool is_run = entry[0] == "compute";
    if (!is_run && entry[0] != "free") read.fail(place, "must be \"compute\" or \"free\"");
    remat::Event event;
    event.node = read.index(entry[1], place + "[1]");
    if (is_run) event.variant = entry.size() > 2 ? read.index(entry[2], place + "[2]") : 0;
    events.push_back(event);
  }
  return events;
}

std::string format_remat_schedule(const remat::Schedule& schedule,
                                  const RematFigures& figures) {
  Json events = Json::array();
  for (const remat::Event& event : schedule.events) {
    events.push_back(event.is_run() ? Json{"compute", event.node, event.variant}
                                    : Json{"free", event.node});
  }
  const Json json{{"budget_bytes", figures.budget}, {"schedule", std::move(events)},
                  {"peak", schedule.peak},          {"time", schedule.time},
                  {"bound", figures.bound},         {"seconds", figures.seconds}};
  return json.dump() + "\n";
}

}  // namespace tidemark::planner
