// The inputs that each pooling output sees along one axis, and the outputs that see an input.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/registry/op.h"

namespace tidemark {

// Limit on an axis of the input, a window or a stride, so that positions fit in 32 bits.
inline constexpr int64_t kMaxCells = int64_t{1} << 30;

// Vertical, horizontal.
struct Pool2dAttrs {
  int64_t window[2] = {2, 2};
  int64_t stride[2] = {2, 2};
  int64_t padding[2] = {0, 0};  // at most half the window, so that no window is empty
  // 1: the last window may reach past the end, if it begins before the end (PyTorch's
  // ceil_mode); cells outside are ignored. Only for max_pool2d.
  int64_t ceil = 0;
};

// Shape of the output for an input (N, H, W, C). Throws UsageError if the window does not fit,
// or if an axis of x, a window or a stride exceeds kMaxCells.
Shape pooled_shape(const char* op, const OpQuery& query, const Shape& x,
                   const Pool2dAttrs& attrs);

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// Both ends of the ranges grow with the index.
using Windows = std::vector<Range>;

// `outputs` windows that slide over `inputs` cells, without padding.
Windows sliding_windows(int64_t inputs, int64_t outputs, int64_t window, int64_t stride,
                        int64_t padding);
// Windows that divide `inputs` cells as evenly as possible: [floor(i * in / out), ceil((i + 1)
// * in / out)).
Windows adaptive_windows(int64_t inputs, int64_t outputs);
// For each input, the outputs that see it; the range may be empty.
Windows seen_by(const Windows& windows, int64_t inputs);

}  // namespace tidemark
