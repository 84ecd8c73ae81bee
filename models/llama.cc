#include "models/llama.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "models/config_json.h"
#include "models/named.h"
#include "ops/attention/attention.h"
#include "ops/attention/rotary.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/inplace.h"
#include "ops/elementwise/silu_mul.h"
#include "ops/linear/linear.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

constexpr double kDeviation = 0.02;
constexpr int64_t kMaxWidth = 1 << 24;

LlamaOptions sized(int64_t layers, int64_t width, int64_t heads, int64_t kv_heads,
                   int64_t inner) {
  return {.layers = layers,
          .width = width,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_width = width / heads,
          .inner = inner};
}

LlamaOptions smollm2(LlamaOptions options, double rope_base) {
  options.vocabulary = 49152;
  options.positions = 8192;
  options.rope_base = rope_base;
  options.tied = true;
  return options;
}

LlamaOptions llama3(LlamaOptions options, double factor, bool tied) {
  options.vocabulary = 128256;
  options.positions = 131072;
  options.rope_base = 500000;
  options.scaling = {.kind = RopeScaling::Kind::kLlama3, .factor = factor};
  options.tied = tied;
  return options;
}

LlamaOptions qwen2(LlamaOptions options, int64_t vocabulary, bool tied) {
  options.vocabulary = vocabulary;
  options.positions = 32768;
  options.norm_eps = 1e-6;
  options.rope_base = 1000000;
  options.qkv_bias = true;
  options.tied = tied;
  options.type = "qwen2";
  return options;
}

const std::vector<Named<LlamaOptions>>& table() {
  static const std::vector<Named<LlamaOptions>> entries{
      {"smollm2-135m", smollm2(sized(30, 576, 9, 3, 1536), 100000)},
      {"smollm2-360m", smollm2(sized(32, 960, 15, 5, 2560), 100000)},
      {"smollm2-1.7b", smollm2(sized(24, 2048, 32, 32, 8192), 130000)},
      {"llama-2-7b", {}},
      {"llama-3.2-1b", llama3(sized(16, 2048, 32, 8, 8192), 32, true)},
      {"llama-3.2-3b", llama3(sized(28, 3072, 24, 8, 8192), 32, true)},
      {"llama-3.1-8b", llama3(sized(32, 4096, 32, 8, 14336), 8, false)},
      {"llama-3.1-70b", llama3(sized(80, 8192, 64, 8, 28672), 8, false)},
      {"qwen2.5-0.5b", qwen2(sized(24, 896, 14, 2, 4864), 151936, true)},
      {"qwen2.5-1.5b", qwen2(sized(28, 1536, 12, 2, 8960), 151936, true)},
      {"qwen2.5-7b", qwen2(sized(28, 3584, 28, 4, 18944), 152064, false)},
      {"mistral-7b",
       {.vocabulary = 32768,
        .positions = 32768,
        .kv_heads = 8,
        .inner = 14336,
        .rope_base = 1000000,
        .type = "mistral"}},
  };
  return entries;
}

void refuse_partial(const ConfigJson& config) {
  constexpr const char* kKey = "partial_rotary_factor";
  if (config.number(kKey, 1) != 1) config.fail(kKey, "must be 1: whole heads turn");
}

// "rope_parameters" holds the base too, in newer files.
void read_rope(const ConfigJson& config, LlamaOptions& options) {
  options.rope_base = config.number("rope_theta", options.rope_base);
  refuse_partial(config);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const std::optional<ConfigJson> rope = config.object(key);
    if (!rope) continue;
    options.rope_base = rope->number("rope_theta", options.rope_base);
    refuse_partial(*rope);
    const char* type = rope->has("rope_type") ? "rope_type" : "type";
    rope->require(type, {"default", "linear", "llama3"});
    const std::string kind = rope->has(type) ? rope->text(type) : "default";
    if (kind == "default") continue;
    RopeScaling& scaling = options.scaling;
    if (!rope->has("factor")) rope->fail("factor", "is missing");
    scaling.factor = rope->number("factor", 1);
    scaling.kind = RopeScaling::Kind::kLinear;
    if (kind == "linear") continue;
    scaling.kind = RopeScaling::Kind::kLlama3;
    scaling.low = rope->number("low_freq_factor", scaling.low);
    scaling.high = rope->number("high_freq_factor", scaling.high);
    if (scaling.high <= scaling.low) {
      rope->fail("high_freq_factor", "must be above 'low_freq_factor'");
    }
    scaling.first_length = rope->size("original_max_position_embeddings");
  }
}

// Attention to the last keys alone is not implemented: a sequence may not be longer. Which keys
// say so, and what a missing one means, depends on the type.
int64_t read_positions(const ConfigJson& config, const std::string& type) {
  const int64_t positions = config.size("max_position_embeddings");
  const bool slides = type == "mistral"
                          ? config.has("sliding_window") || !config.names("sliding_window")
                          : type == "qwen2" && config.has("sliding_window") &&
                                config.flag("use_sliding_window").value_or(false);
  if (!slides) return positions;
  constexpr int64_t kMistralWindow = 4096;
  return std::min(
      positions, config.has("sliding_window") ? config.size("sliding_window") : kMistralWindow);
}

// Which projections have biases is fixed but for the type "llama".
void read_biases(const ConfigJson& config, LlamaOptions& options) {
  const bool llama = options.type == "llama";
  options.qkv_bias =
      llama ? config.flag("attention_bias").value_or(false) : options.type == "qwen2";
  options.output_bias = llama && options.qkv_bias;
  options.inner_bias = llama && config.flag("mlp_bias").value_or(false);
}

LlamaOptions read_config(const ConfigJson& config) {
  config.require("hidden_act", {"silu"});
  LlamaOptions options;
  options.type = config.text("model_type");
  options.vocabulary = config.size("vocab_size");
  options.positions = read_positions(config, options.type);
  options.layers = config.layers("num_hidden_layers");
  options.width = config.size("hidden_size");
  options.heads = config.size("num_attention_heads");
  options.kv_heads = config.has("num_key_value_heads") || options.type != "llama"
                         ? config.size("num_key_value_heads")
                         : options.heads;
  if (options.heads % options.kv_heads != 0) {
    config.fail("num_key_value_heads", "does not divide 'num_attention_heads'");
  }
  if (!config.has("head_dim")) config.require_divisor("num_attention_heads", "hidden_size");
  options.head_width =
      config.has("head_dim") ? config.size("head_dim") : options.width / options.heads;
  if (options.head_width % 2 != 0) {
    config.fail(config.has("head_dim") ? "head_dim" : "num_attention_heads",
                "gives heads of an odd size");
  }
  if (options.head_width > kMaxWidth / options.heads) {
    config.fail(config.has("head_dim") ? "head_dim" : "hidden_size",
                "gives more than 2^24 values for all heads of a token");
  }
  options.inner = config.size("intermediate_size");
  options.norm_eps = config.eps("rms_norm_eps", 1e-6);
  options.tied = config.flag("tie_word_embeddings").value_or(false);
  read_biases(config, options);
  read_rope(config, options);
  return options;
}

std::string config_of(const LlamaOptions& options) {
  nlohmann::json json{{"model_type", options.type},
                      {"vocab_size", options.vocabulary},
                      {"max_position_embeddings", options.positions},
                      {"num_hidden_layers", options.layers},
                      {"hidden_size", options.width},
                      {"num_attention_heads", options.heads},
                      {"num_key_value_heads", options.kv_heads},
                      {"head_dim", options.head_width},
                      {"intermediate_size", options.inner},
                      {"hidden_act", "silu"},
                      {"rms_norm_eps", options.norm_eps},
                      {"rope_theta", options.rope_base},
                      {"tie_word_embeddings", options.tied}};
  if (options.type == "llama") {
    json["attention_bias"] = options.qkv_bias;
    json["mlp_bias"] = options.inner_bias;
  } else if (options.type == "mistral") {
    json["sliding_window"] = nullptr;
  }
  const RopeScaling& scaling = options.scaling;
  if (scaling.kind == RopeScaling::Kind::kLinear) {
    json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", scaling.factor}};
  } else if (scaling.kind == RopeScaling::Kind::kLlama3) {
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", scaling.factor},
                            {"low_freq_factor", scaling.low},
                            {"high_freq_factor", scaling.high},
                            {"original_max_position_embeddings", scaling.first_length}};
  }
  return json.dump();
}

MakeTextModel make(const LlamaOptions& published) {
  return [published](const TextModelOptions& run, ParameterInit& init) {
    LlamaOptions options = published;
    options.vocabulary = run.vocabulary;
    options.attention = run.attention;
    if (run.longest > 0) options.positions = std::min(options.positions, run.longest);
    return std::make_unique<Llama>(options, init);
  };
}

TextModelInfo describe(const LlamaOptions& options) {
  const std::string family = options.type == "qwen2"     ? "Qwen2"
                             : options.type == "mistral" ? "Mistral"
                                                         : "Llama";
  return {.family = family,
          .unnamed = options.type + "-like",
          .tasks = {{"clm", make(options)}},
          .sizes = {options.layers, options.width, options.heads, options.inner, 0},
          .longest = options.positions,
          .vocabulary = options.vocabulary,
          .words = "model.embed_tokens.weight",
          .inner = "model.layers.0.mlp.gate_proj.weight",
          .words_format = "that of its tokenizer.json",
          .config = config_of(options)};
}

DenseOptions dense(int64_t in, int64_t out, bool bias) {
  return {.in = in, .out = out, .deviation = kDeviation, .bias = bias};
}

Tensor heads_of(const Tensor& x, int64_t heads) {
  return reshape(x, {x.extent(0), x.extent(1), heads, -1});
}

}  // namespace

LlamaOptions llama_options(const std::string& name) { return find_named(table(), name); }

TextFamily llama_family() {
  return {
      .models = mapped(table(), describe),
      .config_types = {"llama", "qwen2", "mistral"},
      .from_config = [](const ConfigJson& config) { return describe(read_config(config)); }};
}

std::vector<float> rope_frequencies(const LlamaOptions& options) {
  const RopeScaling& scaling = options.scaling;
  std::vector<float> frequencies;
  for (int64_t i = 0; i < options.head_width / 2; ++i) {
    const double power = 2.0 * static_cast<double>(i) / static_cast<double>(options.head_width);
    double frequency = 1 / std::pow(options.rope_base, power);
    // Of the ramp: 0 from the longest wavelengths on, 1 from the shortest.
    double kept = scaling.kind == RopeScaling::Kind::kNone ? 1 : 0;
    if (scaling.kind == RopeScaling::Kind::kLlama3) {
      const double turns =
          static_cast<double>(scaling.first_length) * frequency / (2 * std::numbers::pi);
      kept = std::clamp((turns - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0);
    }
    frequency *= kept + (1 - kept) / scaling.factor;
    frequencies.push_back(static_cast<float>(frequency));
  }
  return frequencies;
}

RotaryTables::RotaryTables(const LlamaOptions& options, int64_t rows) {
  std::vector<float> cosines, sines;
  if (Session::current().device().has_data()) {
    const std::vector<float> frequencies = rope_frequencies(options);
    cosines.reserve(static_cast<size_t>(rows) * frequencies.size());
    sines.reserve(cosines.capacity());
    for (int64_t row = 0; row < rows; ++row) {
      for (const float frequency : frequencies) {
        const float angle = static_cast<float>(row) * frequency;  // as in Hugging Face's code
        cosines.push_back(static_cast<float>(std::cos(double{angle})));
        sines.push_back(static_cast<float>(std::sin(double{angle})));
      }
    }
  }
  const Shape shape{rows, options.head_width / 2};
  cos = ParameterInit::buffer(shape, std::move(cosines), "rotary.cos");
  sin = ParameterInit::buffer(shape, std::move(sines), "rotary.sin");
}

LlamaLayer::LlamaLayer(const LlamaOptions& options, ParameterInit& init)
    : options_(options),
      norm1_(options.width, init, options.norm_eps),
      norm2_(options.width, init, options.norm_eps),
      query_(dense(options.width, options.heads * options.head_width, options.qkv_bias), init),
      key_(dense(options.width, options.kv_heads * options.head_width, options.qkv_bias), init),
      value_(dense(options.width, options.kv_heads * options.head_width, options.qkv_bias),
             init),
      output_(dense(options.heads * options.head_width, options.width, options.output_bias),
              init),
      gate_(dense(options.width, options.inner, options.inner_bias), init),
      up_(dense(options.width, options.inner, options.inner_bias), init),
      down_(dense(options.inner, options.width, options.inner_bias), init) {
  register_child("input_layernorm", norm1_);
  register_child("self_attn.q_proj", query_);
  register_child("self_attn.k_proj", key_);
  register_child("self_attn.v_proj", value_);
  register_child("self_attn.o_proj", output_);
  register_child("post_attention_layernorm", norm2_);
  register_child("mlp.gate_proj", gate_);
  register_child("mlp.up_proj", up_);
  register_child("mlp.down_proj", down_);
}

LlamaCache::LlamaCache(const LlamaOptions& options, int64_t longest, DType dtype)
    : longest_(longest) {
  const Shape shape{1, longest, options.kv_heads, options.head_width};
  const auto empty = [&] {
    return Session::current().upload_from(
        [](Bytes, std::span<std::byte> piece) { std::ranges::fill(piece, std::byte{0}); },
        TensorMeta::contiguous(dtype, shape), Category::kBuffer, "cache");
  };
  for (int64_t i = 0; i < options.layers; ++i) layers_.push_back({empty(), empty()});
}

Tensor LlamaLayer::attend(const Tensor& x, const LlamaPlaces& places, LlamaCache::Layer* cache,
                          int64_t before) const {
  const Tensor q = rotary(heads_of(query_.forward(x), options_.heads), places.cos, places.sin);
  Tensor k = rotary(heads_of(key_.forward(x), options_.kv_heads), places.cos, places.sin);
  Tensor v = heads_of(value_.forward(x), options_.kv_heads);
  if (cache) {
    const int64_t length = x.extent(1);
    copy_(narrow(cache->keys, 1, before, length), k);
    copy_(narrow(cache->values, 1, before, length), v);
    k = narrow(cache->keys, 1, 0, before + length);
    v = narrow(cache->values, 1, 0, before + length);
  }
  AttentionOptions attention;
  attention.causal = before == 0;  // a continuation is one token, which sees all
  attention.starts = places.starts;
  attention.implementation = options_.attention;
  const Tensor y = scaled_dot_product_attention(q, k, v, attention);
  return output_.forward(reshape(y, {x.extent(0), x.extent(1), -1}));
}

Tensor LlamaLayer::forward(const Tensor& x, const LlamaPlaces& places, LlamaCache::Layer* cache,
                           int64_t before) const {
  const Scope scope(*this);
  const Tensor y = add(attend(norm1_.forward(x), places, cache, before), x);
  const Tensor h = norm2_.forward(y);
  return add(down_.forward(silu_mul(gate_.forward(h), up_.forward(h))), y);
}

Llama::Llama(const LlamaOptions& options, ParameterInit& init)
    : options_(options),
      words_({.rows = options.vocabulary, .columns = options.width, .deviation = kDeviation},
             init),
      tables_(options, options.positions),
      norm_(options.width, init, options.norm_eps) {
  register_child("model.embed_tokens", words_);
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.push_back(std::make_unique<LlamaLayer>(options, init));
    register_child("model.layers." + std::to_string(i), *layers_.back());
  }
  register_child("model.norm", norm_);
  if (options.tied) return;
  head_.emplace(dense(options.width, options.vocabulary, false), init);
  register_child("lm_head", *head_);
}

void Llama::check(const Tensor& tokens) const {
  if (tokens.shape().rank() == 2 && tokens.extent(1) <= options_.positions) return;
  throw UsageError("[llama] tokens must be (N, L), L at most " +
                   std::to_string(options_.positions) + ", not " + tokens.shape().to_string());
}

LlamaPlaces Llama::places(int64_t begin, int64_t length) const {
  return {narrow(tables_.cos, 0, begin, length), narrow(tables_.sin, 0, begin, length)};
}

Tensor Llama::project(const Tensor& rows) const {
  return head_ ? head_->forward(rows) : linear(rows, words_.weight());
}

Tensor Llama::hidden(const Tensor& tokens, const LlamaPlaces& places) const {
  Tensor x = words_.forward(tokens);
  for (const auto& layer : layers_) x = layer->forward(x, places);
  return reshape(norm_.forward(x), {-1, options_.width});
}

Tensor Llama::logits(const Tensor& tokens) const {
  check(tokens);
  return project(hidden(tokens, places(0, tokens.extent(1))));
}

TextOutput Llama::run(const TextInput& input) const {
  check(input.tokens);
  // Rotary positions are relative: a packed sequence may keep those of its row.
  LlamaPlaces where = places(0, input.tokens.extent(1));
  where.starts = input.starts;
  return score_words(hidden(input.tokens, where), head_ ? head_->weight() : words_.weight(),
                     input);
}

Tensor Llama::next(const Tensor& tokens, LlamaCache& cache) const {
  check(tokens);
  const int64_t length = tokens.extent(1), before = cache.length_;
  if (tokens.extent(0) != 1 || (before > 0 && length != 1) ||
      before + length > std::min(cache.longest_, options_.positions)) {
    throw UsageError("[llama] " + tokens.shape().to_string() + " tokens cannot continue " +
                     std::to_string(before) + " of at most " +
                     std::to_string(std::min(cache.longest_, options_.positions)));
  }
  const NoGrad no_grad;
  const LlamaPlaces where = places(before, length);
  Tensor x = words_.forward(tokens);
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i]->forward(x, where, &cache.layers_[i], before);
  }
  cache.length_ += length;
  return project(norm_.forward(narrow(reshape(x, {length, options_.width}), 0, length - 1, 1)));
}

}  // namespace tidemark
