#include "ops/linear/linear.h"

#include <string>

#include "ops/linear/matmul.h"
#include "ops/view/view.h"

namespace tidemark {

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Shape& shape = x.shape();
  const auto inputs = [&] {
    return "; inputs " + shape.to_string() + ", " + w.shape().to_string();
  };
  if (shape.rank() == 0 || w.shape().rank() != 2) {
    throw UsageError(
        "[linear] the input must have a last dimension, the weight must be (outputs, inputs)" +
        inputs());
  }
  if (shape.back() != w.extent(1)) {
    throw UsageError("[linear] the input's last dimension is " + std::to_string(shape.back()) +
                     ", but the weight (outputs, inputs) takes " + std::to_string(w.extent(1)) +
                     inputs());
  }
  if (bias.defined() && bias.shape() != Shape{w.extent(0)}) {
    throw UsageError("[linear] the bias must have one element for each of the " +
                     std::to_string(w.extent(0)) + " outputs" + inputs() + ", " +
                     bias.shape().to_string());
  }
  if (shape.rank() == 2) return matmul(x, w, false, true, bias);
  const Tensor rows = reshape(x, {shape.elements() / shape.back(), shape.back()});
  Shape y_shape = shape;
  y_shape[shape.rank() - 1] = w.extent(0);
  return reshape(matmul(rows, w, false, true, bias), y_shape);
}

}  // namespace tidemark
