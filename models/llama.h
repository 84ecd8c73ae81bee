// Llama (Touvron et al., 2023) and networks of its form: Qwen2, Mistral, SmolLM. A transformer
// that predicts the next token. Parameters have the names of Hugging Face transformers:
// "model.layers.0.self_attn.q_proj.weight".
//
//   x = words                                                            (N, L, width)
//   layer: x = x + o(attention(rotary(q(h)), rotary(k(h)), v(h))), h = norm(x)
//          x = x + down(silu(gate(h)) * up(h)), h = norm(x)
//   logits = head(norm(x))                                               (N L, vocabulary)
//
// Norms are of the root mean square. Adjacent heads of queries share one of keys and values.
// Nothing is dropped. Initial weights are normal with deviation 0.02; biases are 0, norms 1.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/nn/dense.h"
#include "models/nn/layers.h"
#include "models/nn/module.h"
#include "models/nn/parameter_init.h"
#include "models/text_model.h"

namespace tidemark {

// How rotary positions reach beyond the length that a network was first trained with.
struct RopeScaling {
  enum class Kind : uint8_t { kNone, kLinear, kLlama3 };
  Kind kind = Kind::kNone;
  double factor = 1;
  // kLlama3 (Grattafiori et al., 2024): wavelengths above first_length / low are divided by the
  // factor, those below first_length / high stay, and between them goes a ramp.
  double low = 1, high = 4;
  int64_t first_length = 8192;

  bool operator==(const RopeScaling&) const = default;
};

struct LlamaOptions {
  int64_t vocabulary = 32000;
  int64_t positions = 4096;  // longest sequence
  int64_t layers = 32;
  int64_t width = 4096;
  int64_t heads = 32;
  int64_t kv_heads = 32;  // divides heads
  int64_t head_width = 128;
  int64_t inner = 11008;
  double norm_eps = 1e-5;
  double rope_base = 10000;
  RopeScaling scaling{};
  bool qkv_bias = false;       // of q, k and v
  bool output_bias = false;    // of o
  bool inner_bias = false;     // of gate, up and down
  bool tied = false;           // the head's weight is the words'
  std::string type = "llama";  // config.json's model_type
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;
};

// "llama-2-7b", "smollm2-135m", ... Throws UsageError for other names.
LlamaOptions llama_options(const std::string& name);
// The same networks, for programs; task clm.
TextFamily llama_family();

// The angle by which each pair of elements of a head turns per position: head_width / 2 values.
std::vector<float> rope_frequencies(const LlamaOptions& options);

// Cosines and sines of the angles of positions 0 to rows - 1: (rows, head_width / 2) each.
struct RotaryTables {
  RotaryTables(const LlamaOptions& options, int64_t rows);
  Tensor cos, sin;
};

// What a layer needs to know of its input's tokens.
struct LlamaPlaces {
  Tensor cos, sin;  // of the tokens' positions: (L, head_width / 2)
  Tensor starts{};  // TextInput::starts
};

// Keys and values of the tokens of one sequence so far, for networks that continue it.
class LlamaCache {
 public:
  // For up to `longest` tokens; in `dtype`, the type that the network computes in. Throws
  // OutOfMemory.
  LlamaCache(const LlamaOptions& options, int64_t longest, DType dtype);
  int64_t length() const { return length_; }
  int64_t longest() const { return longest_; }

  struct Layer {
    Tensor keys, values;  // (1, longest, kv_heads, head_width)
  };

 private:
  friend class Llama;
  std::vector<Layer> layers_;
  int64_t longest_, length_ = 0;
};

class LlamaLayer : public Module {
 public:
  LlamaLayer(const LlamaOptions& options, ParameterInit& init);
  // With a cache, x continues the `before` tokens in it, and is added to it. REQUIRES: the
  // cache has space and the layer's type; x is one token unless `before` is 0.
  Tensor forward(const Tensor& x, const LlamaPlaces& places, LlamaCache::Layer* cache = nullptr,
                 int64_t before = 0) const;

 private:
  Tensor attend(const Tensor& x, const LlamaPlaces& places, LlamaCache::Layer* cache,
                int64_t before) const;

  LlamaOptions options_;
  RmsNorm norm1_, norm2_;
  Dense query_, key_, value_, output_;
  Dense gate_, up_, down_;
};

class Llama : public TextModel {
 public:
  Llama(const LlamaOptions& options, ParameterInit& init);

  // tokens (N, L), int64, L <= positions -> (N L, vocabulary). Throws UsageError if the shape
  // does not fit.
  Tensor logits(const Tensor& tokens) const;
  // Makes no logits (linear_cross_entropy.h).
  TextOutput run(const TextInput& input) const override;

  // Continues a sequence by tokens (1, L), and returns the logits (1, vocabulary) of what comes
  // after the last of them. With a cache that is not empty, L must be 1. Not differentiable.
  // Throws UsageError if the cache has no space.
  Tensor next(const Tensor& tokens, LlamaCache& cache) const;

  const LlamaOptions& options() const { return options_; }

 private:
  void check(const Tensor& tokens) const;
  // The tables' rows [begin, begin + length).
  LlamaPlaces places(int64_t begin, int64_t length) const;
  // The normalised rows (N L, width) from which the next tokens are predicted.
  Tensor hidden(const Tensor& tokens, const LlamaPlaces& places) const;
  Tensor project(const Tensor& rows) const;  // (N, width) -> (N, vocabulary)

  LlamaOptions options_;
  Embedding words_;
  RotaryTables tables_;
  std::vector<std::unique_ptr<LlamaLayer>> layers_;
  RmsNorm norm_;
  std::optional<Dense> head_;  // none if tied
};

}  // namespace tidemark
