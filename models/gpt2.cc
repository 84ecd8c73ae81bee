#include "models/gpt2.h"

#include <cmath>

#include "models/config_json.h"
#include "models/named.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/gelu.h"
#include "ops/linear/linear.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

const std::vector<Named<Gpt2Options>>& table() {
  static const std::vector<Named<Gpt2Options>> entries{
      {"gpt2", {}},
      {"gpt2-medium", {.layers = 24, .width = 1024, .heads = 16}},
      {"gpt2-large", {.layers = 36, .width = 1280, .heads = 20}},
      {"gpt2-xl", {.layers = 48, .width = 1600, .heads = 25}},
  };
  return entries;
}

constexpr double kDeviation = 0.02;

double residual_deviation(const Gpt2Options& options) {
  return kDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));
}

MultiHeadAttentionOptions attention_options(const Gpt2Options& options) {
  MultiHeadAttentionOptions attention;
  attention.width = options.width;
  attention.heads = options.heads;
  attention.causal = true;
  attention.dropout = options.attention_dropout;
  attention.implementation = options.attention;
  attention.fused = true;
  attention.fused_name = "c_attn";
  attention.output = "c_proj";
  attention.deviation = kDeviation;
  attention.output_deviation = residual_deviation(options);
  return attention;
}

EmbeddingOptions table_of(int64_t rows, const Gpt2Options& options) {
  return {.rows = rows, .columns = options.width, .deviation = kDeviation};
}

Gpt2Options read_config(const ConfigJson& config) {
  config.require("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  config.require_divisor("n_head", "n_embd");
  Gpt2Options options;
  options.vocabulary = config.size("vocab_size");
  options.positions = config.size("n_positions");
  options.layers = config.layers("n_layer");
  options.width = config.size("n_embd");
  options.heads = config.size("n_head");
  options.norm_eps = config.eps("layer_norm_epsilon", options.norm_eps);
  if (config.has("n_inner") && config.size("n_inner") != 4 * options.width) {
    config.fail("n_inner", "must be four times 'n_embd'");
  }
  return options;
}

std::string config_of(const Gpt2Options& options) {
  return nlohmann::json{{"model_type", "gpt2"},
                        {"vocab_size", options.vocabulary},
                        {"n_positions", options.positions},
                        {"n_layer", options.layers},
                        {"n_embd", options.width},
                        {"n_head", options.heads},
                        {"layer_norm_epsilon", options.norm_eps}}
      .dump();
}

MakeTextModel make(const Gpt2Options& published) {
  return [published](const TextModelOptions& run, ParameterInit& init) {
    Gpt2Options options = published;
    options.vocabulary = run.vocabulary;
    options.dropout = options.attention_dropout = run.dropout;
    options.attention = run.attention;
    return std::make_unique<Gpt2>(options, init);
  };
}

TextModelInfo describe(const Gpt2Options& options) {
  return {.family = "GPT-2",
          .unnamed = "gpt2-like",
          .tasks = {{"clm", make(options)}},
          .sizes = {options.layers, options.width, options.heads, 4 * options.width,
                    options.positions},
          .longest = options.positions,
          .vocabulary = options.vocabulary,
          .words = "transformer.wte.weight",
          .positions = "transformer.wpe.weight",
          .inner = "transformer.h.0.mlp.c_fc.weight",
          .words_format = "byte-level BPE (vocab.json and merges.txt)",
          .config = config_of(options)};
}

}  // namespace

Gpt2Options gpt2_options(const std::string& name) { return find_named(table(), name); }

TextFamily gpt2_family() {
  return {
      .models = mapped(table(), describe),
      .config_types = {"gpt2"},
      .from_config = [](const ConfigJson& config) { return describe(read_config(config)); }};
}

Gpt2Layer::Gpt2Layer(const Gpt2Options& options, ParameterInit& init)
    : norm1_(options.width, init, options.norm_eps),
      attention_(attention_options(options), init),
      norm2_(options.width, init, options.norm_eps),
      inner_({.in = options.width, .out = 4 * options.width, .in_first = true}, init),
      outer_({.in = 4 * options.width,
              .out = options.width,
              .deviation = residual_deviation(options),
              .in_first = true},
             init),
      dropout_(options.dropout) {
  register_child("ln_1", norm1_);
  register_child("attn", attention_);
  register_child("ln_2", norm2_);
  register_child("mlp.c_fc", inner_);
  register_child("mlp.c_proj", outer_);
  register_child("dropout", dropout_);
}

Tensor Gpt2Layer::forward(const Tensor& x) const {
  const Scope scope(*this);
  const Tensor y = add(dropout_.forward(attention_.forward(norm1_.forward(x))), x);
  const Tensor inner = gelu(inner_.forward(norm2_.forward(y)), GeluKind::kTanh);
  return add(dropout_.forward(outer_.forward(inner)), y);
}

Gpt2::Gpt2(const Gpt2Options& options, ParameterInit& init)
    : options_(options),
      words_(table_of(options.vocabulary, options), init),
      positions_(table_of(options.positions, options), init),
      dropout_(options.dropout),
      norm_(options.width, init, options.norm_eps) {
  register_child("transformer.wte", words_);
  register_child("transformer.wpe", positions_);
  register_child("transformer.drop", dropout_);
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.push_back(std::make_unique<Gpt2Layer>(options, init));
    register_child("transformer.h." + std::to_string(i), *layers_.back());
  }
  register_child("transformer.ln_f", norm_);
}

Tensor Gpt2::logits(const Tensor& tokens) const {
  if (tokens.shape().rank() != 2 || tokens.extent(1) > options_.positions) {
    throw UsageError("[gpt2] tokens must be (N, L), L at most " +
                     std::to_string(options_.positions) + ", not " +
                     tokens.shape().to_string());
  }
  Tensor x = dropout_.forward(
      add(words_.forward(tokens), narrow(positions_.weight(), 0, 0, tokens.extent(1))));
  for (const auto& layer : layers_) x = layer->forward(x);
  return linear(reshape(norm_.forward(x), {-1, options_.width}), words_.weight());
}

TextOutput Gpt2::run(const TextInput& input) const {
  refuse_packed(input, "gpt2");
  return score_words(logits(input.tokens), input.labels);
}

}  // namespace tidemark
