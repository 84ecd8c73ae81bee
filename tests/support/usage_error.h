// What misuse is answered with.
#pragma once

#include <string>

#include "runtime/core/errors.h"

namespace tidemark::testing {

// The message of the Error that `body` throws; empty if it throws none.
template <class Error, class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

template <class Body>
std::string usage_error(const Body& body) {
  return message_of<UsageError>(body);
}

}  // namespace tidemark::testing
