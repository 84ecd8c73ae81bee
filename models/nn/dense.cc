#include "models/nn/dense.h"

#include "ops/linear/linear.h"
#include "ops/linear/matmul.h"
#include "ops/view/view.h"

namespace tidemark {

Dense::Dense(const DenseOptions& options, ParameterInit& init)
    : options_(options),
      weight_(init.normal(
          options.in_first ? Shape{options.in, options.out} : Shape{options.out, options.in},
          options.deviation)) {
  register_parameter("weight", weight_);
  if (!options.bias) return;
  bias_ = init.constant(Shape{options.out}, 0);
  register_parameter("bias", bias_);
}

Tensor Dense::forward(const Tensor& x) const {
  const Scope scope(*this);
  if (!options_.in_first) return linear(working(x), working(weight_), bias_);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = options_.out;
  return reshape(
      matmul(reshape(working(x), {-1, options_.in}), working(weight_), false, false, bias_),
      shape);
}

}  // namespace tidemark
