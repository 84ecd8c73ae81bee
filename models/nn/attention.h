// Multi-head attention, of a sequence to itself or to another one, including the input and
// output projections.
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
  int64_t heads = 1;  // must divide the width
  bool causal = false;
  double dropout = 0;  // applied to probabilities, in training mode
  AttentionImplementation implementation = AttentionImplementation::kMemoryEfficient;
  // false: separate projections, each weight (out, in), as in BERT. true: one projection for
  // query, key and value, each weight (in, out), as in GPT-2.
  bool fused = false;
  // Parameters are NAME.weight and NAME.bias. Fused, there are only `fused_name` and `output`.
  // Hugging Face's names within a layer's attention are "self.query", "self.key", "self.value"
  // and "output.dense" in BERT, "c_attn" and "c_proj" in GPT-2.
  std::string query = "query", key = "key", value = "value", output = "output";
  std::string fused_name = "c_attn";
  double deviation = 0.02;                   // initial weights are normal; biases are 0
  std::optional<double> output_deviation{};  // for the output projection, if different
};

class MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(const MultiHeadAttentionOptions& options, ParameterInit& init);

  // x (B, T, width) -> (B, T, width). Attends to `memory` (B, S, width), or to x if `memory` is
  // undefined, as it must be with fused projections. `keys`: which positions to attend to exist
  // (AttentionOptions::keys); undefined: all. Throws UsageError if shapes do not fit.
  Tensor forward(const Tensor& x, const Tensor& keys = {}, const Tensor& memory = {}) const;

 private:
  struct Projection {
    Tensor weight, bias;
  };
  Projection make(const std::string& name, int64_t out, double deviation, ParameterInit& init);
  void check(const char* what, const Tensor& x) const;
  // Changes x's last dimension from width to `out`.
  Tensor project(const Tensor& x, const Projection& by) const;
  // The same, split into heads: (B, T, H, width / H).
  Tensor heads_of(const Tensor& x, const Projection& by) const;

  MultiHeadAttentionOptions options_;
  Projection query_, key_, value_;  // fused: query_ holds all three
  Projection output_;
};

}  // namespace tidemark
