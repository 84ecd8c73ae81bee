#include "runtime/planner/io/remat_problem_json.h"

#include <nlohmann/json.hpp>

namespace tidemark::planner {
namespace {

using Json = nlohmann::json;

Json variant_to_json(const remat::Variant& variant) {
  Json json{{"time", variant.time}, {"inputs", variant.inputs}};
  if (!variant.name.empty()) json["name"] = variant.name;
  if (variant.workspace != 0) json["workspace"] = variant.workspace;
  if (variant.overwrites != remat::kNoNode) json["overwrites"] = variant.overwrites;
  if (variant.when != remat::When::kAny) {
    json["when"] = variant.when == remat::When::kFirst ? "first" : "again";
  }
  if (variant.with) json["with"] = *variant.with;
  return json;
}

}  // namespace

std::string format_remat_problem(const remat::Problem& problem,
                                 const std::vector<int64_t>& budgets) {
  Json json{{"format", "remat-1"},
            {"name", problem.name},
            {"unit_time", problem.unit_time},
            {"fixed_bytes", problem.fixed_bytes},
            {"base_time", problem.base_time},
            {"budgets", Json::array()},
            {"nodes", Json::array()}};
  for (const int64_t budget : budgets) json["budgets"].push_back({{"bytes", budget}});
  for (const remat::Node& node : problem.nodes) {
    Json entry{{"bytes", node.bytes}, {"variants", Json::array()}};
    if (!node.name.empty()) entry["name"] = node.name;
    if (node.required) entry["required"] = true;
    if (node.once) entry["once"] = true;
    if (node.adds_fixed > 0) entry["adds_fixed"] = node.adds_fixed;
    if (node.rider_of != remat::kNoNode) entry["rider_of"] = node.rider_of;
    if (!node.after.empty()) entry["after"] = node.after;
    for (const remat::Variant& variant : node.variants) {
      entry["variants"].push_back(variant_to_json(variant));
    }
    json["nodes"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

}  // namespace tidemark::planner
