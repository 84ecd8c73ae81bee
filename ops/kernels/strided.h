// Iterates over several tensors of one (broadcast) shape together, whatever their strides.
//
// Built once per signature. Extents of 1 are dropped, and dimensions that are adjacent in every
// operand are merged, so most calls become one flat loop. A plain struct, so that kernels on
// any device can take it by value.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "ops/kernels/parallel_for.h"
#include "runtime/core/host_device.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

inline constexpr size_t kMaxOperands = 5;

struct StridedLoop {
  int64_t elements = 0;
  size_t rank = 1;  // at least 1
  std::array<int64_t, kMaxRank> extents{};
  std::array<std::array<int64_t, kMaxRank>, kMaxOperands> strides{};  // [operand][dimension]

  // Whether all operands are gapless and in the order of the loop.
  bool flat(size_t operands) const {
    if (rank != 1) return false;
    for (size_t k = 0; k < operands; ++k) {
      if (strides[k][0] != 1) return false;
    }
    return true;
  }
  // Offset of element `index` of an operand.
  TIDEMARK_HOST_DEVICE int64_t offset(size_t operand, int64_t index) const {
    int64_t offset = 0;
    for (size_t d = rank; d-- > 0;) {
      offset += index % extents[d] * strides[operand][d];
      index /= extents[d];
    }
    return offset;
  }
};

// A loop over `shape`. REQUIRES: every operand broadcasts to `shape`.
StridedLoop make_loop(const Shape& shape, std::initializer_list<const TensorMeta*> operands);

namespace detail {

template <class F, size_t... I, class... T>
void apply_row(int64_t n, const F& f, const std::array<int64_t, sizeof...(I)>& steps,
               std::index_sequence<I...>, T*... at) {
  if (((steps[I] == 1) && ...)) {
    TIDEMARK_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) f(at[i]...);
    return;
  }
  // A row and one repeated value, in either order.
  if constexpr (sizeof...(I) == 3 && (size_t{std::is_const_v<T>} + ...) == 2) {
    const auto row_and_value = [&f, n](auto* y, auto* a, auto* b) {
      const auto value = *b;
      TIDEMARK_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < n; ++i) f(y[i], a[i], value);
    };
    const auto value_and_row = [&f, n](auto* y, auto* a, auto* b) {
      const auto value = *a;
      TIDEMARK_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < n; ++i) f(y[i], value, b[i]);
    };
    if (n > 0 && steps[0] == 1 && steps[1] == 1 && steps[2] == 0) return row_and_value(at...);
    if (n > 0 && steps[0] == 1 && steps[1] == 0 && steps[2] == 1) return value_and_row(at...);
  }
  for (int64_t i = 0; i < n; ++i) f(at[i * steps[I]]...);
}

template <class F, size_t... I, class... T>
void apply(const StridedLoop& loop, const F& f, std::index_sequence<I...> operands,
           T*... data) {
  const size_t last = loop.rank - 1;
  const std::array<int64_t, sizeof...(I)> steps{loop.strides[I][last]...};
  const int64_t row = loop.extents[last];
  parallel_chunks(loop.elements, kSerialElements, [&](int64_t begin, int64_t end) {
    std::array<int64_t, kMaxRank> index{};
    int64_t rest = begin;
    for (size_t d = loop.rank; d-- > 0;) {
      index[d] = rest % loop.extents[d];
      rest /= loop.extents[d];
    }
    std::array<int64_t, sizeof...(I)> at{loop.offset(I, begin)...};
    while (true) {
      const int64_t n = std::min(row - index[last], end - begin);
      apply_row(n, f, steps, operands, (data + at[I])...);
      begin += n;
      if (begin == end) return;
      // To the next row: return to the start of this row, then carry.
      ((at[I] -= index[last] * steps[I]), ...);
      index[last] = 0;
      for (size_t d = last; d-- > 0;) {
        ((at[I] += loop.strides[I][d]), ...);
        if (++index[d] < loop.extents[d]) break;
        ((at[I] -= loop.strides[I][d] * loop.extents[d]), ...);
        index[d] = 0;
      }
    }
  });
}

}  // namespace detail

// Calls f(x0, x1, ...) for every element, with a reference to that element of each operand. A
// written operand must not overlap any other, unless both are exactly the same elements.
template <class F, class... T>
void apply(const StridedLoop& loop, const F& f, T*... data) {
  detail::apply(loop, f, std::index_sequence_for<T...>(), data...);
}

}  // namespace tidemark
