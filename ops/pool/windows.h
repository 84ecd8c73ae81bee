// Which inputs each output of a pooling sees along one axis, and which outputs see an input.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/registry/op.h"

namespace tidemark {

// Of an axis of the input, a window or a stride: positions fit in 32 bits.
inline constexpr int64_t kMaxCells = int64_t{1} << 30;

// Vertical, horizontal.
struct Pool2dAttrs {
  int64_t window[2] = {2, 2};
  int64_t stride[2] = {2, 2};
  int64_t padding[2] = {0, 0};  // at most half the window, so that no window is empty
  // 1: the last window may reach past the end, as long as it begins before it (PyTorch's
  // ceil_mode); what lies outside is left out. Only max_pool2d.
  int64_t ceil = 0;
};

// Shape of the output for an input (N, H, W, C). Throws UsageError if the window does not fit,
// or there are more than kMaxCells.
Shape pooled_shape(const char* op, const OpQuery& query, const Shape& x,
                   const Pool2dAttrs& attrs);

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// Ranges grow with the index at both ends.
using Windows = std::vector<Range>;

// Of `outputs` windows that slide over `inputs` cells, padding left out.
Windows sliding_windows(int64_t inputs, int64_t outputs, int64_t window, int64_t stride,
                        int64_t padding);
// That share `inputs` cells as evenly as can be: [floor(i * in / out), ceil((i + 1) * in /
// out)).
Windows adaptive_windows(int64_t inputs, int64_t outputs);
// For each input, the outputs that see it; some may be seen by none.
Windows seen_by(const Windows& windows, int64_t inputs);

}  // namespace tidemark
