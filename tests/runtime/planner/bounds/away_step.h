// A step with one gap.
#pragma once

#include "tests/support/trace_builder.h"

namespace tidemark::testing {

// s0 is of no use to the third call, which needs all of the space; then at once it is.
inline TraceBuilder away() {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 10'000'000, 4);
  const uint32_t s1 = step.call({s0}, 10'000'000, 4);
  const uint32_t s2 = step.call({s1}, 10'000'000, 4);
  step.call({s0, s2}, 1, 0);
  return step;
}

}  // namespace tidemark::testing
