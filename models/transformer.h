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
// torch.nn.Transformer, but that the three projections into an attention are separate: "query",
// "key" and "value", of which PyTorch's in_proj is made.
//
// First weights are normal, as wide as Glorot's, sqrt(2 / (in + out)); words 1 / sqrt(width).
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
  int64_t vocabulary = 37'000;  // of both languages together
  int64_t longest = 512;        // sequence
  int64_t layers = 6;           // of the encoder, and of the decoder
  int64_t width = 512;
  int64_t heads = 8;
  int64_t inner = 2048;  // width between a layer's two dense layers
  double dropout = 0.1;  // in training mode
  double norm_eps = 1e-5;
  bool final_norms = false;  // after either half's last layer, as torch.nn.Transformer has them
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;
};

class TransformerLayer : public Module {
 public:
  // A decoder's has the attention to the encoder's result.
  TransformerLayer(const TransformerOptions& options, bool decoder, ParameterInit& init);

  // x (N, T, width) -> the same; of a decoder, `memory` (N, S, width). `keys`: which positions
  // there are to be attended to, of x in an encoder, of `memory` in a decoder.
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

  // Tokens (N, S) and (N, T), int64 or int32 -> (N T, vocabulary): row n T + t says what
  // follows token t of the target. `source_keys`: which tokens of the source there are
  // (AttentionOptions::keys); undefined: all. What follows a target's end changes nothing
  // before it. Throws UsageError if shapes do not fit.
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
