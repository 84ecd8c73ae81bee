// The step that most tests of releases look at.
#pragma once

#include <cstdint>

#include "tests/support/trace_builder.h"

namespace tidemark::testing {

// a b c are made in turn and used in the reverse order.
inline TraceBuilder tower(int64_t cost_a, int64_t cost_b, int64_t cost_c, int64_t size = 1) {
  TraceBuilder record;
  const uint32_t a = record.call({}, cost_a, size), b = record.call({}, cost_b, size),
                 c = record.call({}, cost_c, size);
  for (const uint32_t item : {c, b, a}) record.run({item}, 10'000);
  return record;
}

}  // namespace tidemark::testing
