#include "models/transformer.h"

#include <cmath>
#include <string>
#include <utility>

#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/relu.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/linear.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

double glorot(int64_t in, int64_t out) {
  return std::sqrt(2.0 / static_cast<double>(in + out));
}

MultiHeadAttentionOptions attention_options(const TransformerOptions& options, bool causal) {
  MultiHeadAttentionOptions attention;
  attention.width = options.width;
  attention.heads = options.heads;
  attention.causal = causal;
  attention.implementation = options.attention;
  attention.output = "out_proj";
  attention.deviation = glorot(options.width, options.width);
  return attention;
}

DenseOptions dense_options(int64_t in, int64_t out) {
  return {.in = in, .out = out, .deviation = glorot(in, out)};
}

// Section 3.5: element 2i of row p is sin(p / 10000^(2i / width)), element 2i + 1 the cosine.
Tensor sinusoids(int64_t rows, int64_t width) {
  std::vector<float> values;
  if (Session::current().device().has_data()) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < width; ++i) {
        const int64_t even = i - i % 2;
        const double power = static_cast<double>(even) / static_cast<double>(width);
        const double angle = static_cast<double>(row) / std::pow(10'000.0, power);
        values.push_back(static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
      }
    }
  }
  return ParameterInit::buffer(Shape{rows, width}, std::move(values), "positions");
}

}  // namespace

TransformerLayer::Cross::Cross(const TransformerOptions& options, ParameterInit& init)
    : attention(attention_options(options, false), init),
      norm(options.width, init, options.norm_eps) {}

TransformerLayer::TransformerLayer(const TransformerOptions& options, bool decoder,
                                   ParameterInit& init)
    : attention_(attention_options(options, decoder), init),
      attention_norm_(options.width, init, options.norm_eps),
      cross_(decoder ? std::make_unique<Cross>(options, init) : nullptr),
      inner_(dense_options(options.width, options.inner), init),
      outer_(dense_options(options.inner, options.width), init),
      norm_(options.width, init, options.norm_eps),
      dropout_(options.dropout) {
  register_child("self_attn", attention_);
  register_child("norm1", attention_norm_);
  if (cross_) {
    register_child("multihead_attn", cross_->attention);
    register_child("norm2", cross_->norm);
  }
  register_child("linear1", inner_);
  register_child("linear2", outer_);
  register_child(cross_ ? "norm3" : "norm2", norm_);
  register_child("dropout", dropout_);
}

Tensor TransformerLayer::joined(const LayerNorm& norm, const Tensor& x,
                                const Tensor& change) const {
  const Scope scope(*this);
  return norm.forward(add(dropout_.forward(change), x));
}

Tensor TransformerLayer::forward(const Tensor& x_in, const Tensor& memory,
                                 const Tensor& keys) const {
  const Scope scope(*this);
  Tensor x = joined(attention_norm_, x_in, attention_.forward(x_in, cross_ ? Tensor() : keys));
  if (cross_) x = joined(cross_->norm, x, cross_->attention.forward(x, keys, memory));
  return joined(norm_, x, outer_.forward(relu(inner_.forward(x))));
}

Transformer::Half::Half(const TransformerOptions& options, bool decoder, ParameterInit& init) {
  for (int64_t i = 0; i < options.layers; ++i) {
    layers.push_back(std::make_unique<TransformerLayer>(options, decoder, init));
    register_child("layers." + std::to_string(i), *layers.back());
  }
  if (!options.final_norms) return;
  norm = std::make_unique<LayerNorm>(options.width, init, options.norm_eps);
  register_child("norm", *norm);
}

Tensor Transformer::Half::forward(Tensor x, const Tensor& memory, const Tensor& keys) const {
  for (const auto& layer : layers) x = layer->forward(x, memory, keys);
  return norm ? norm->forward(x) : x;
}

Transformer::Transformer(const TransformerOptions& options, ParameterInit& init)
    : options_(options),
      words_({.rows = options.vocabulary,
              .columns = options.width,
              .deviation = 1 / std::sqrt(static_cast<double>(options.width))},
             init),
      positions_(sinusoids(options.longest, options.width)),
      dropout_(options.dropout),
      encoder_(options, false, init),
      decoder_(options, true, init) {
  register_child("embedding", words_);
  register_child("dropout", dropout_);
  register_child("encoder", encoder_);
  register_child("decoder", decoder_);
}

Tensor Transformer::embed(const Tensor& tokens) const {
  if (tokens.shape().rank() != 2 || tokens.extent(1) > options_.longest) {
    throw UsageError("[transformer] tokens must be (N, L), L at most " +
                     std::to_string(options_.longest) + ", not " + tokens.shape().to_string());
  }
  const Tensor words =
      scale(words_.forward(tokens), std::sqrt(static_cast<double>(options_.width)));
  return dropout_.forward(add(words, working(narrow(positions_, 0, 0, tokens.extent(1)))));
}

Tensor Transformer::logits(const Tensor& source, const Tensor& target,
                           const Tensor& source_keys) const {
  const Tensor memory = encoder_.forward(embed(source), {}, source_keys);
  const Tensor y = decoder_.forward(embed(target), memory, source_keys);
  return linear(reshape(y, {-1, options_.width}), words_.weight());
}

}  // namespace tidemark
