// (B, T, H, D) tensors as rows of D elements: the operands of attention and of rotary.
#pragma once

#include <cstdint>

#include "ops/view/contiguous.h"
#include "runtime/core/host_device.h"
#include "runtime/tensor/tensor.h"

namespace tidemark::attention {

// Strides of the rows of a (B, T, H, D) tensor, in elements; each row is gapless. Heads are
// numbered as the queries'; `sharing` of them in a row have the same head of this tensor.
struct Rows {
  int64_t batch, row, head, sharing;

  explicit Rows(const TensorMeta& meta) : Rows(meta, meta.shape[2]) {}
  Rows(const TensorMeta& meta, int64_t heads)
      : batch(meta.strides[0]),
        row(meta.strides[1]),
        head(meta.strides[2]),
        sharing(heads / meta.shape[2]) {}
  TIDEMARK_HOST_DEVICE int64_t at(int64_t b, int64_t h, int64_t t) const {
    return b * batch + t * row + h / sharing * head;
  }
};

// Whether x's rows are gapless, and those of different positions do not overlap. REQUIRES: x
// has four dimensions.
inline bool has_rows(const TensorMeta& x) {
  return (x.shape[3] == 1 || x.strides[3] == 1) &&
         (x.shape[1] == 1 || x.strides[1] >= x.shape[3]);
}

// x, or a copy with gapless rows.
inline Tensor with_rows(const Tensor& x) {
  return x.shape().rank() != 4 || has_rows(x.meta()) ? x : contiguous(x);
}

}  // namespace tidemark::attention
