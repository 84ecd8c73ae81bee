// Where the operators' tests run: "cpu", unless a program's main sets another device before any
// test runs.
#pragma once

#include <string>

namespace tidemark::testing {

inline std::string& device_under_test() {
  static std::string name = "cpu";
  return name;
}

}  // namespace tidemark::testing
