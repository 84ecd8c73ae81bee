// Broadcasting, spelled out on host vectors: the reference for elementwise operators.
#pragma once

#include <vector>

#include "runtime/core/shape.h"

namespace tidemark::testing {

// The element of `values`, of shape `from`, that element `index` of `to` repeats.
template <class T>
T broadcast_element(const std::vector<T>& values, const Shape& from, const Shape& to,
                    int64_t index) {
  const Shape steps = contiguous_strides(from);
  const size_t lead = to.rank() - from.rank();
  int64_t at = 0;
  for (size_t d = to.rank(); d-- > 0;) {
    const int64_t i = index % to[d];
    index /= to[d];
    if (d >= lead && from[d - lead] != 1) at += i * steps[d - lead];
  }
  return values[static_cast<size_t>(at)];
}

}  // namespace tidemark::testing
