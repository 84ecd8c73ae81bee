// For parsers of `size` bytes: a DataError is fine if its place, or -1, is within them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/core/errors.h"

template <class Parse>
void allow_errors_within(size_t size, const Parse& parse) {
  try {
    parse();
  } catch (const tidemark::DataError& error) {
    if (error.offset() < -1 || error.offset() > static_cast<int64_t>(size)) std::abort();
  }
}
