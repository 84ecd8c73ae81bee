// GPT-2 (Radford et al., 2019): a transformer that predicts the next token. Parameters have the
// names, and the weights the (in, out) layout, of Hugging Face transformers:
// "transformer.h.0.attn.c_attn.weight".
//
//   x = dropout(words + positions)                                       (N, L, width)
//   layer: x = x + dropout(attention(norm(x)));  x = x + dropout(outer(gelu(inner(norm(x)))))
//   logits = norm(x) words^T                                             (N L, vocabulary)
//
// Initial weights are normal with deviation 0.02, or 0.02 / sqrt(2 layers) where they write to
// the residual stream; biases are 0, norms 1 and 0.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/nn/attention.h"
#include "models/nn/dense.h"
#include "models/nn/layers.h"
#include "models/nn/module.h"
#include "models/nn/parameter_init.h"
#include "models/text_model.h"

namespace tidemark {

struct Gpt2Options {
  int64_t vocabulary = 50257;
  int64_t positions = 1024;  // longest sequence
  int64_t layers = 12;
  int64_t width = 768;
  int64_t heads = 12;
  double dropout = 0.1;            // in training mode
  double attention_dropout = 0.1;  // applied to attention's probabilities
  double norm_eps = 1e-5;
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;
};

// "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl". Throws UsageError for other names.
Gpt2Options gpt2_options(const std::string& name);
// The same networks, for programs; task clm.
TextFamily gpt2_family();

class Gpt2Layer : public Module {
 public:
  Gpt2Layer(const Gpt2Options& options, ParameterInit& init);
  Tensor forward(const Tensor& x) const;

 private:
  LayerNorm norm1_;
  MultiHeadAttention attention_;
  LayerNorm norm2_;
  Dense inner_, outer_;
  Dropout dropout_;
};

class Gpt2 : public TextModel {
 public:
  Gpt2(const Gpt2Options& options, ParameterInit& init);
  TextOutput run(const TextInput& input) const override;

  // tokens (N, L), int64 or int32 -> (N L, vocabulary); row n L + l predicts the token after l.
  // Throws UsageError if shapes do not fit.
  Tensor logits(const Tensor& tokens) const;

 private:
  Gpt2Options options_;
  Embedding words_, positions_;
  Dropout dropout_;
  std::vector<std::unique_ptr<Gpt2Layer>> layers_;
  LayerNorm norm_;
};

}  // namespace tidemark
