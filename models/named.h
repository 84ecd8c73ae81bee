// Tables of networks, or of networks' options, by name.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/errors.h"

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

// Throws UsageError, which lists the names.
[[noreturn]] inline void throw_unknown_model(const std::string& name,
                                             const std::vector<std::string>& names) {
  std::string known;
  for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
  throw UsageError("unknown model '" + name + "'; available: " + known);
}

// Throws UsageError, which lists the table's names, if it does not have this one.
template <class T>
const T& find_named(const std::vector<Named<T>>& table, const std::string& name) {
  for (const Named<T>& entry : table) {
    if (entry.name == name) return entry.value;
  }
  throw_unknown_model(name, names_of(table));
}

}  // namespace tidemark
