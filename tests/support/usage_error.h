// What misuse is answered with.
#pragma once

#include <string>

#include "runtime/core/errors.h"

namespace tidemark::testing {

// The message of the UsageError that `body` throws; empty if it throws none.
template <class Body>
std::string usage_error(const Body& body) {
  try {
    body();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace tidemark::testing
