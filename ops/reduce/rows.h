// Private to this folder: the rows that max, argmax and accuracy_count reduce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/kernels/strided.h"
#include "runtime/tensor/tensor.h"

namespace tidemark::reduce {

// The rows along the last dimension, with any strides.
struct Rows {
  explicit Rows(const TensorMeta& x) {
    const size_t rank = x.shape.rank() - 1;
    const TensorMeta starts{x.dtype, Shape(std::span(x.shape.begin(), rank)),
                            Shape(std::span(x.strides.begin(), rank)), 0};
    loop = make_loop(starts.shape, {&starts});
    length = x.shape.back();
    step = x.strides.back();
  }
  int64_t count() const { return loop.elements; }

  StridedLoop loop;
  int64_t length;
  int64_t step;
};

}  // namespace tidemark::reduce
