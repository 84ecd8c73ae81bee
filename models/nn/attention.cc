#include "models/nn/attention.h"

#include <vector>

#include "ops/linear/linear.h"
#include "ops/linear/matmul.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"

namespace tidemark {

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionOptions& options,
                                       ParameterInit& init)
    : options_(options) {
  if (options_.heads < 1 || options_.width % options_.heads != 0) {
    throw UsageError("[attention] " + std::to_string(options_.heads) +
                     " heads do not divide a width of " + std::to_string(options_.width));
  }
  const double deviation = options_.deviation;
  if (options_.fused) {
    query_ = make(options_.fused_name, 3 * options_.width, deviation, init);
  } else {
    query_ = make(options_.query, options_.width, deviation, init);
    key_ = make(options_.key, options_.width, deviation, init);
    value_ = make(options_.value, options_.width, deviation, init);
  }
  output_ = make(options_.output, options_.width, options_.output_deviation.value_or(deviation),
                 init);
}

MultiHeadAttention::Projection MultiHeadAttention::make(const std::string& name, int64_t out,
                                                        double deviation, ParameterInit& init) {
  const int64_t in = options_.width;
  Projection made{init.normal(options_.fused ? Shape{in, out} : Shape{out, in}, deviation),
                  init.constant(Shape{out}, 0)};
  register_parameter(name + ".weight", made.weight);
  register_parameter(name + ".bias", made.bias);
  return made;
}

Tensor MultiHeadAttention::project(const Tensor& x, const Projection& by) const {
  if (!options_.fused) return linear(x, working(by.weight), by.bias);
  const Tensor rows = reshape(x, {-1, options_.width});
  return reshape(matmul(rows, working(by.weight), false, false, by.bias),
                 {x.extent(0), x.extent(1), by.bias.extent(0)});
}

Tensor MultiHeadAttention::heads_of(const Tensor& x, const Projection& by) const {
  return reshape(project(x, by),
                 {x.extent(0), x.extent(1), options_.heads, options_.width / options_.heads});
}

void MultiHeadAttention::check(const char* what, const Tensor& x) const {
  if (x.shape().rank() == 3 && x.extent(2) == options_.width) return;
  throw UsageError("[attention] " + std::string(what) + " must be (B, T, " +
                   std::to_string(options_.width) + "), not " + x.shape().to_string());
}

Tensor MultiHeadAttention::forward(const Tensor& input, const Tensor& keys,
                                   const Tensor& attended) const {
  const Scope scope(*this);
  const Tensor x = working(input), memory = attended ? working(attended) : attended;
  check("the input", x);
  if (memory) check("the memory", memory);
  std::vector<Tensor> qkv;
  if (options_.fused) {
    if (memory) throw UsageError("[attention] fused projections support self-attention only");
    const Tensor all = reshape(project(x, query_), {x.extent(0), x.extent(1), 3, options_.heads,
                                                    options_.width / options_.heads});
    for (const Tensor& part : split(all, 2, 3)) qkv.push_back(squeeze(part, 2));
  } else {
    const Tensor& from = memory ? memory : x;
    qkv = {heads_of(x, query_), heads_of(from, key_), heads_of(from, value_)};
  }
  AttentionOptions attention;
  attention.keys = keys;
  attention.causal = options_.causal;
  attention.dropout = training() ? options_.dropout : 0;
  attention.implementation = options_.implementation;
  const Tensor y = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], attention);
  return project(reshape(y, x.shape()), output_);
}

}  // namespace tidemark
