#include <array>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/delta/heuristics/heuristic.h"

namespace tidemark {

std::span<const Heuristic> heuristics() {
  static constexpr std::array kAll{
      Heuristic{"base", base_score, "1 / (size * staleness)"},
      Heuristic{"lru", lru_score, "1 / staleness"},
      Heuristic{"greedy", greedy_score, "1 / size"},
  };
  return kAll;
}

const Heuristic& find_heuristic(std::string_view name) {
  std::string names;
  for (const Heuristic& heuristic : heuristics()) {
    if (heuristic.name == name) return heuristic;
    names += (names.empty() ? "" : ", ") + std::string(heuristic.name);
  }
  throw UsageError("there is no filter '" + std::string(name) + "'; there are: " + names);
}

}  // namespace tidemark
