// The encoder-decoder transformer of "Attention Is All You Need" (Vaswani et al., 2017,
// arXiv:1706.03762), base size unless told otherwise.
//
//   x = dropout(sqrt(width) words + positions)                                 (N, S, width)
//   encoder layer: x = norm(x + dropout(attention(x)))
//                  x = norm(x + dropout(outer(relu(inner(x)))))
//   decoder layer: the same, its attention causal, and between the two
//                  x = norm(x + dropout(attention from x to the encoder's result))
//   logits = x words^T                                                     (N T, vocabulary)
//
// One table of words serves the source, the target and the logits (section 3.4). Positions are
// the sines and cosines of section 3.5, and are not trained. Parameters are named as in
// torch.nn.Transformer, except that an attention's three input projections are separate
// ("query", "key" and "value"), where PyTorch joins them in in_proj.
//
// Initial weights are normal with Glorot's deviation, sqrt(2 / (in + out)); words 1 /
// sqrt(width).
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/nn/attention.h"
#include "models/nn/dense.h"
#include "models/nn/layers.h"
#include "models/nn/module.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

struct TransformerOptions {
  int64_t vocabulary = 37'000;  // both languages together
  int64_t longest = 512;        // sequence
  int64_t layers = 6;           // in the encoder, and again in the decoder
  int64_t width = 512;
  int64_t heads = 8;
  int64_t inner = 2048;  // width between a layer's two dense layers
  double dropout = 0.1;  // in training mode
  double norm_eps = 1e-5;
  bool final_norms = false;  // after each half's last layer, as in torch.nn.Transformer
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;
};

class TransformerLayer : public Module {
 public:
  // A decoder layer also attends to the encoder's result.
  TransformerLayer(const TransformerOptions& options, bool decoder, ParameterInit& init);

  // x (N, T, width) -> (N, T, width). In a decoder, `memory` is (N, S, width). `keys`: which
  // positions can be attended to, of x in an encoder, of `memory` in a decoder.
  Tensor forward(const Tensor& x, const Tensor& memory, const Tensor& keys) const;

 private:
  // norm(x + dropout(change))
  Tensor joined(const LayerNorm& norm, const Tensor& x, const Tensor& change) const;

  struct Cross {
    Cross(const TransformerOptions& options, ParameterInit& init);
    MultiHeadAttention attention;
    LayerNorm norm;
  };

  MultiHeadAttention attention_;
  LayerNorm attention_norm_;
  std::unique_ptr<Cross> cross_;  // null in an encoder
  Dense inner_, outer_;
  LayerNorm norm_;
  Dropout dropout_;
};

class Transformer : public Module {
 public:
  Transformer(const TransformerOptions& options, ParameterInit& init);

  // Tokens (N, S) and (N, T), int64 or int32 -> (N T, vocabulary); row n T + t predicts the
  // target's token after t. `source_keys`: which tokens of the source exist
  // (AttentionOptions::keys); undefined: all. Tokens after a target's end do not affect the
  // rows before it. Throws UsageError if shapes do not fit.
  Tensor logits(const Tensor& source, const Tensor& target,
                const Tensor& source_keys = {}) const;

 private:
  Tensor embed(const Tensor& tokens) const;

  struct Half : Module {
    Half(const TransformerOptions& options, bool decoder, ParameterInit& init);
    Tensor forward(Tensor x, const Tensor& memory, const Tensor& keys) const;
    std::vector<std::unique_ptr<TransformerLayer>> layers;
    std::unique_ptr<LayerNorm> norm;  // may be null
  };

  TransformerOptions options_;
  Embedding words_;
  Tensor positions_;  // (longest, width)
  Dropout dropout_;
  Half encoder_, decoder_;
};

}  // namespace tidemark
