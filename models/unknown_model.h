// What the tables of networks say of a name that they do not have.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/errors.h"

namespace tidemark {

// Throws UsageError, which lists the names.
[[noreturn]] inline void throw_unknown_model(const std::string& name,
                                             const std::vector<std::string>& names) {
  std::string known;
  for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
  throw UsageError("there is no model '" + name + "'; there are " + known);
}

}  // namespace tidemark
