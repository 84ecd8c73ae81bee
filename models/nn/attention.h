// Attention with several heads, to a sequence itself or to another, between the projections
// into it and out of it.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/nn/module.h"
#include "models/nn/parameter_init.h"
#include "ops/attention/attention.h"

namespace tidemark {

struct MultiHeadAttentionOptions {
  int64_t width = 0;  // of the input and the output
  int64_t heads = 1;  // divide the width
  bool causal = false;
  double dropout = 0;  // of probabilities, in training mode
  AttentionImplementation implementation = AttentionImplementation::kMemoryEfficient;
  // Projections as separate layers, each weight (out, in), as BERT has them; or the three into
  // it as one, and each weight (in, out), as GPT-2 has them.
  bool fused = false;
  // Parameters are NAME.weight and NAME.bias. Fused, there are only `fused_name` and `output`.
  // Hugging Face's names within a layer's attention are "self.query", "self.key", "self.value"
  // and "output.dense" in BERT, "c_attn" and "c_proj" in GPT-2.
  std::string query = "query", key = "key", value = "value", output = "output";
  std::string fused_name = "c_attn";
  double deviation = 0.02;                   // of weights at first, normal; biases are 0
  std::optional<double> output_deviation{};  // of the output projection's, if another
};

class MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(const MultiHeadAttentionOptions& options, ParameterInit& init);

  // x (B, T, width) -> (B, T, width). Attended to is `memory` (B, S, width), x itself if that
  // is undefined; with fused projections it must be. `keys`: which of its positions are there
  // (AttentionOptions::keys); undefined: all. Throws UsageError if shapes do not fit.
  Tensor forward(const Tensor& x, const Tensor& keys = {}, const Tensor& memory = {}) const;

 private:
  struct Projection {
    Tensor weight, bias;
  };
  Projection make(const std::string& name, int64_t out, double deviation, ParameterInit& init);
  void check(const char* what, const Tensor& x) const;
  // x's last dimension, width, becomes `out`.
  Tensor project(const Tensor& x, const Projection& by) const;
  // The same with heads apart: (B, T, H, width / H).
  Tensor heads_of(const Tensor& x, const Projection& by) const;

  MultiHeadAttentionOptions options_;
  Projection query_, key_, value_;  // fused: query_ holds all three
  Projection output_;
};

}  // namespace tidemark
