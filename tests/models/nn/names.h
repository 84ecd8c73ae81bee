// The names of a module's tensors.
#pragma once

#include <string>
#include <vector>

#include "models/nn/module.h"

namespace tidemark::testing {

inline std::vector<std::string> names(const std::vector<NamedTensor>& list) {
  std::vector<std::string> all;
  for (const NamedTensor& one : list) all.push_back(one.name);
  return all;
}

}  // namespace tidemark::testing
