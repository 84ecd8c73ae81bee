#include "models/nn/conv_blocks.h"

#include "ops/create/create.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/unary.h"
#include "ops/pool/avg_pool2d.h"
#include "ops/random/random.h"

namespace tidemark {

Tensor Sequential::forward(const Tensor& x) const {
  const Scope scope(*this);
  Tensor y = x;
  for (const Function& function : functions_) y = function(y);
  return y;
}

ConvNorm::ConvNorm(const ConvNormOptions& options, ParameterInit& init)
    : activation_(options.activation),
      conv_(options.conv, init),
      norm_(options.conv.out, init, options.norm) {
  register_child(options.conv_name, conv_);
  register_child(options.norm_name, norm_);
}

Tensor ConvNorm::forward(const Tensor& x) const {
  const Scope scope(*this);
  return norm_.forward(conv_.forward(x), activation_);
}

SqueezeExcitation::SqueezeExcitation(int64_t channels, int64_t squeezed, ParameterInit& init)
    : fc1_({.in = channels, .out = squeezed, .bias = true}, init),
      fc2_({.in = squeezed, .out = channels, .bias = true}, init) {
  register_child("fc1", fc1_);
  register_child("fc2", fc2_);
}

Tensor SqueezeExcitation::forward(const Tensor& x) const {
  const Scope scope(*this);
  const Tensor squeezed = silu(fc1_.forward(adaptive_avg_pool2d(x, 1, 1)));
  return mul(x, sigmoid(fc2_.forward(squeezed)));
}

Tensor stochastic_depth(const Tensor& x, double p) {
  if (p == 0) return x;
  return mul(x, dropout(ones(Shape{x.extent(0), 1, 1, 1}, x.dtype()), p));
}

}  // namespace tidemark
