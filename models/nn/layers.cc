#include "models/nn/layers.h"

#include <cmath>

#include "ops/autograd/autograd.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/inplace.h"
#include "ops/embedding/embedding.h"
#include "ops/linear/linear.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/rms_norm.h"
#include "ops/norm/running_stats.h"
#include "ops/random/random.h"
#include "ops/view/view.h"

namespace tidemark {

Conv2d::Conv2d(const Conv2dOptions& options, ParameterInit& init)
    : options_(options),
      weight_(init.kaiming_normal_fan_out(
          Shape{options.out, options.kernel, options.kernel, options.in / options.groups})) {
  register_parameter("weight", weight_);
  if (!options.bias) return;
  bias_ = init.constant(Shape{options.out}, 0);
  register_parameter("bias", bias_);
}

Tensor Conv2d::forward(const Tensor& x) const {
  const Scope scope(*this);
  return conv2d(working(x), working(weight_), bias_,
                {.stride = {options_.stride, options_.stride},
                 .padding = {options_.padding, options_.padding},
                 .dilation = {options_.dilation, options_.dilation},
                 .groups = options_.groups});
}

BatchNorm2d::BatchNorm2d(int64_t channels, ParameterInit& init, const BatchNormOptions& options)
    : options_(options),
      weight_(init.constant(Shape{channels}, options.gamma)),
      bias_(init.constant(Shape{channels}, 0)),
      running_mean_(ParameterInit::buffer(Shape{channels}, 0)),
      running_var_(ParameterInit::buffer(Shape{channels}, 1)) {
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
  register_buffer("running_mean", running_mean_);
  register_buffer("running_var", running_var_);
}

Tensor BatchNorm2d::forward(const Tensor& input, Activation activation,
                            const Tensor& around) const {
  const Scope scope(*this);
  const Tensor x = working(input);
  const Tensor residual = around.defined() ? working(around) : around;
  if (!training()) {
    return batch_norm_inference(x, weight_, bias_, running_mean_, running_var_, options_.eps,
                                activation, residual);
  }
  const BatchNormResult result =
      batch_norm(x, weight_, bias_, options_.eps, activation, residual);
  track(x, result.mean, result.var);
  return result.y;
}

void BatchNorm2d::track(const Tensor& x, const Tensor& mean, const Tensor& var) const {
  const NoGrad no_grad;
  update_running_stats_(running_mean_, running_var_, mean, var, options_.momentum,
                        x.elements() / x.shape().back());
}

Linear::Linear(int64_t in, int64_t out, ParameterInit& init)
    : weight_(init.uniform(Shape{out, in}, 1 / std::sqrt(static_cast<double>(in)))),
      bias_(init.uniform(Shape{out}, 1 / std::sqrt(static_cast<double>(in)))) {
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
}

Tensor Linear::forward(const Tensor& x) const {
  const Scope scope(*this);
  return linear(working(x), working(weight_), bias_);
}

LayerNorm::LayerNorm(int64_t columns, ParameterInit& init, double eps)
    : eps_(eps),
      weight_(init.constant(Shape{columns}, 1)),
      bias_(init.constant(Shape{columns}, 0)) {
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
}

Tensor LayerNorm::forward(const Tensor& x) const {
  const Scope scope(*this);
  return layer_norm(working(x), weight_, bias_, eps_);
}

RmsNorm::RmsNorm(int64_t columns, ParameterInit& init, double eps)
    : eps_(eps), weight_(init.constant(Shape{columns}, 1)) {
  register_parameter("weight", weight_);
}

Tensor RmsNorm::forward(const Tensor& x) const {
  const Scope scope(*this);
  return rms_norm(working(x), weight_, eps_);
}

Embedding::Embedding(const EmbeddingOptions& options, ParameterInit& init)
    : padding_idx_(options.padding_idx),
      weight_(init.normal(Shape{options.rows, options.columns}, options.deviation)) {
  if (padding_idx_) {
    const int64_t row = *padding_idx_ < 0 ? *padding_idx_ + options.rows : *padding_idx_;
    fill_(narrow(weight_, 0, row, 1), 0);
  }
  register_parameter("weight", weight_);
}

Tensor Embedding::forward(const Tensor& ids) const {
  const Scope scope(*this);
  // The lookup is in float32: fewer rows are converted than the table has.
  return working(embedding(weight_, ids, padding_idx_));
}

Tensor Dropout::forward(const Tensor& x) const {
  const Scope scope(*this);
  return training() ? dropout(x, p_) : x;
}

Tensor Gelu::forward(const Tensor& x) const {
  const Scope scope(*this);
  return gelu(x, kind_);
}

}  // namespace tidemark
