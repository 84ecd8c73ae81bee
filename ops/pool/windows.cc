#include "ops/pool/windows.h"

#include <algorithm>

#include "ops/shapes/check.h"

namespace tidemark {

Shape pooled_shape(const char* op, const OpQuery& query, const Shape& x,
                   const Pool2dAttrs& attrs) {
  Shape y{x[0], 0, 0, x[3]};
  for (size_t axis : {0, 1}) {
    check_fits(op, query, 2 * attrs.padding[axis] <= attrs.window[axis],
               "padding must be at most half the window");
    y[axis + 1] = window_positions(op, query, x[axis + 1], attrs.window[axis],
                                   attrs.stride[axis], attrs.padding[axis]);
    check_fits(op, query,
               std::max({x[axis + 1], attrs.window[axis], attrs.stride[axis]}) <= kMaxCells,
               "an axis, a window or a stride is longer than 2^30");
    if (!attrs.ceil) continue;
    const int64_t next = y[axis + 1] * attrs.stride[axis] - attrs.padding[axis];
    const int64_t end =
        (y[axis + 1] - 1) * attrs.stride[axis] - attrs.padding[axis] + attrs.window[axis];
    if (end < x[axis + 1] + attrs.padding[axis] && next < x[axis + 1]) ++y[axis + 1];
  }
  return y;
}

Windows sliding_windows(int64_t inputs, int64_t outputs, int64_t window, int64_t stride,
                        int64_t padding) {
  Windows windows;
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t begin = i * stride - padding;
    windows.push_back({std::max<int64_t>(begin, 0), std::min(begin + window, inputs)});
  }
  return windows;
}

Windows adaptive_windows(int64_t inputs, int64_t outputs) {
  Windows windows;
  for (int64_t i = 0; i < outputs; ++i) {
    windows.push_back({i * inputs / outputs, ((i + 1) * inputs + outputs - 1) / outputs});
  }
  return windows;
}

Windows seen_by(const Windows& windows, int64_t inputs) {
  Windows seen(static_cast<size_t>(inputs));
  int64_t begin = 0, end = 0;
  const int64_t outputs = static_cast<int64_t>(windows.size());
  for (int64_t i = 0; i < inputs; ++i) {
    while (begin < outputs && windows[static_cast<size_t>(begin)].end <= i) ++begin;
    while (end < outputs && windows[static_cast<size_t>(end)].begin <= i) ++end;
    seen[static_cast<size_t>(i)] = {begin, std::max(begin, end)};
  }
  return seen;
}

}  // namespace tidemark
