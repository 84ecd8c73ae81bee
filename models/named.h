// Tables by name: of networks, or of what makes or describes them.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/core/listed.h"

namespace tidemark {

// An entry of a table.
template <class T>
struct Named {
  std::string name;
  T value;
};

// In the table's order.
template <class T>
std::vector<std::string> names_of(const std::vector<Named<T>>& table) {
  std::vector<std::string> names;
  names.reserve(table.size());
  for (const Named<T>& entry : table) names.push_back(entry.name);
  return names;
}

// The same names with `function` of their values.
template <class T, class Function>
auto mapped(const std::vector<Named<T>>& table, const Function& function) {
  std::vector<Named<decltype(function(table.front().value))>> results;
  results.reserve(table.size());
  for (const Named<T>& entry : table) results.push_back({entry.name, function(entry.value)});
  return results;
}

// Throws UsageError, which lists the table's names, if it does not have this one.
template <class T>
const T& find_named(const std::vector<Named<T>>& table, const std::string& name) {
  for (const Named<T>& entry : table) {
    if (entry.name == name) return entry.value;
  }
  throw UsageError("unknown model '" + name + "'; available: " + listed(names_of(table)));
}

}  // namespace tidemark
