// The windows of windows.h computed arithmetically, for kernels that cannot take tables: the
// inputs that an output sees along one axis, and the outputs that see an input.
#pragma once

#include <cstdint>

#include "ops/pool/windows.h"
#include "runtime/core/host_device.h"

namespace tidemark {

struct WindowAxis {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t window = 0;  // 0: adaptive, the inputs are shared as evenly as can be
  int64_t stride = 1;
  int64_t padding = 0;

  // The inputs that `output` sees, without padding.
  TIDEMARK_HOST_DEVICE Range seen_from(int64_t output) const {
    if (window == 0) {
      return {output * inputs / outputs, ((output + 1) * inputs + outputs - 1) / outputs};
    }
    return seen_sliding(output);
  }
  // The outputs that see `input`; empty if none does.
  TIDEMARK_HOST_DEVICE Range that_see(int64_t input) const {
    if (window == 0) {
      return {input * outputs / inputs, ((input + 1) * outputs + inputs - 1) / inputs};
    }
    return that_see_sliding(input);
  }
  // The same for sliding windows over at most kMaxCells cells. These avoid 64-bit divisions,
  // which are several times slower on a GPU.
  TIDEMARK_HOST_DEVICE Range seen_sliding(int64_t output) const {
    const int64_t begin = first_cell(output), end = begin + window;
    return {begin > 0 ? begin : 0, end < inputs ? end : inputs};
  }
  TIDEMARK_HOST_DEVICE Range that_see_sliding(int64_t input) const {
    const auto cell = static_cast<uint32_t>(input + padding);
    const auto size = static_cast<uint32_t>(window), step = static_cast<uint32_t>(stride);
    // Windows before `begin` end before this cell.
    const int64_t begin = cell < size ? 0 : (cell - size) / step + 1;
    const int64_t end = cell / step + 1;
    const int64_t last = end < outputs ? end : outputs;
    return {begin < last ? begin : last, last};
  }
  // The first cell of the window, counting padding; may be negative.
  TIDEMARK_HOST_DEVICE int64_t first_cell(int64_t output) const {
    return output * stride - padding;
  }
};

// Rows and columns of images (N, H, W, C), pooled to (N, P, Q, C).
struct WindowGrid {
  WindowAxis rows, columns;
  int64_t channels = 0;

  // Offset of pixel (n, h, w) in the input, or in the output.
  TIDEMARK_HOST_DEVICE int64_t input(int64_t n, int64_t h, int64_t w) const {
    return ((n * rows.inputs + h) * columns.inputs + w) * channels;
  }
  TIDEMARK_HOST_DEVICE int64_t output(int64_t n, int64_t p, int64_t q) const {
    return ((n * rows.outputs + p) * columns.outputs + q) * channels;
  }
};

inline WindowGrid sliding_grid(const Shape& x, const Shape& y, const Pool2dAttrs& attrs) {
  const auto axis = [&](size_t i) {
    return WindowAxis{x[i + 1], y[i + 1], attrs.window[i], attrs.stride[i], attrs.padding[i]};
  };
  return {axis(0), axis(1), x[3]};
}

inline WindowGrid adaptive_grid(const Shape& x, const Shape& y) {
  return {{x[1], y[1]}, {x[2], y[2]}, x[3]};
}

}  // namespace tidemark
