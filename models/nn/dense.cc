#include "models/nn/dense.h"

#include <cmath>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/compare.h"
#include "ops/linear/linear.h"
#include "ops/linear/matmul.h"
#include "ops/random/random.h"
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

void Dense::adapt(const LowRankOptions& options, ParameterInit& init) {
  const double bound = 1 / std::sqrt(static_cast<double>(options_.in));
  change_ = {.a = init.uniform(Shape{options.rank, options_.in}, bound),
             .b = init.constant(Shape{options_.out, options.rank}, 0),
             .scale = options.alpha / static_cast<double>(options.rank),
             .dropout = options.dropout};
  register_parameter("lora_A.weight", change_->a);
  register_parameter("lora_B.weight", change_->b);
}

Tensor Dense::forward(const Tensor& input) const {
  const Scope scope(*this);
  const Tensor x = working(input);
  Tensor y;
  if (options_.in_first) {
    Shape shape = x.shape();
    shape[shape.rank() - 1] = options_.out;
    y = reshape(matmul(reshape(x, {-1, options_.in}), working(weight_), false, false, bias_),
                shape);
  } else {
    y = linear(x, working(weight_), bias_);
  }
  if (!change_) return y;
  const Tensor kept = training() ? dropout(x, change_->dropout) : x;
  const Tensor narrow = linear(kept, working(change_->a));
  return add_scaled(y, linear(narrow, working(change_->b)), change_->scale);
}

Tensor Dense::merged_weight() const {
  if (!change_) return weight_;
  const NoGrad no_grad;
  const Tensor change = options_.in_first ? matmul(change_->a, change_->b, true, true)
                                          : matmul(change_->b, change_->a, false, false);
  return cast(add_scaled(cast(weight_, DType::kFloat32), change, change_->scale),
              weight_.dtype());
}

}  // namespace tidemark
