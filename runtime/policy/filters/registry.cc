#include <array>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/core/listed.h"
#include "runtime/policy/filters/filter.h"

namespace tidemark {

std::span<const Filter> filters() {
  static constexpr std::array kAll{
      Filter{"base", base_score, "1 / (size * staleness)"},
      Filter{"lru", lru_score, "1 / staleness"},
      Filter{"greedy", greedy_score, "1 / size"},
  };
  return kAll;
}

const Filter& find_filter(std::string_view name) {
  std::vector<std::string> names;
  for (const Filter& filter : filters()) {
    if (filter.name == name) return filter;
    names.emplace_back(filter.name);
  }
  throw UsageError("unknown filter '" + std::string(name) + "'; available: " + listed(names));
}

}  // namespace tidemark
