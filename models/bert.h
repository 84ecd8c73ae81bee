// BERT (Devlin et al., 2018): a transformer encoder, and two of the heads that it is trained
// with. Parameters have the names of Hugging Face transformers, so their files load as they
// are: "bert.encoder.layer.0.attention.self.query.weight".
//
// XLM-R (Conneau et al., 2019) is the same network with RoBERTa's conventions: 250,002 words,
// row 1 of them padding; a sequence's positions begin at row 2 of 514, and there is one
// segment; norms have eps 1e-5; parameters are "roberta...." and "lm_head....". Hugging Face
// gives tokens of padding position 1; here they go on counting, which nobody sees who does not
// look at padding (BertInput::keys).
//
//   x = dropout(norm(words + positions + segments))                    (N, L, width)
//   layer: x = norm(x + dropout(attention(x)));  x = norm(x + dropout(outer(gelu(inner(x)))))
//
// First weights are normal with deviation 0.02, biases 0, norms 1 and 0; the row that stands
// for padding is 0.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/nn/attention.h"
#include "models/nn/dense.h"
#include "models/nn/layers.h"
#include "models/nn/module.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

struct BertOptions {
  int64_t vocabulary = 30522;
  int64_t positions = 512;     // rows of their table
  int64_t first_position = 0;  // the row that a sequence begins with
  int64_t segments = 2;
  int64_t layers = 12;
  int64_t width = 768;
  int64_t heads = 12;
  int64_t inner = 3072;            // width between a layer's two dense layers
  double dropout = 0.1;            // in training mode
  double attention_dropout = 0.1;  // of attention's probabilities
  std::optional<int64_t> pad{0};   // the row of words that stands for padding
  bool pooler = false;             // make Bert::pooled()'s parameters
  double norm_eps = 1e-12;
  bool roberta_names = false;  // of parameters
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;

  int64_t longest() const { return positions - first_position; }  // sequence
};

// "bert-tiny" (2 layers of 128), "bert-base", "bert-large", "xlm-roberta-base".
const std::vector<std::string>& bert_names();
// Throws UsageError for other names.
BertOptions bert_options(const std::string& name);

struct BertInput {
  Tensor tokens;      // (N, L), int64 or int32
  Tensor segments{};  // (N, L), below options.segments; undefined: all 0
  // Which tokens there are: how many of each row, (N), or a mask, (N, L); undefined: all. See
  // AttentionOptions::keys.
  Tensor keys{};
};

class BertLayer : public Module {
 public:
  BertLayer(const BertOptions& options, ParameterInit& init);
  Tensor forward(const Tensor& x, const Tensor& keys) const;

 private:
  MultiHeadAttention attention_;
  LayerNorm attention_norm_;
  Dense inner_, outer_;
  LayerNorm norm_;
  Dropout dropout_;
};

class Bert : public Module {
 public:
  Bert(const BertOptions& options, ParameterInit& init);

  // -> (N, L, width). Throws UsageError if shapes do not fit.
  Tensor forward(const BertInput& input) const;
  // tanh(dense(x)) of each sequence's first token: (N, L, width) -> (N, width).
  // REQUIRES: options.pooler.
  Tensor pooled(const Tensor& x) const;

  Tensor word_weight() const { return words_.weight(); }  // (vocabulary, width)

 private:
  Tensor embed(const BertInput& input) const;

  BertOptions options_;
  Embedding words_, positions_, segments_;
  LayerNorm norm_;
  Dropout dropout_;
  std::vector<std::unique_ptr<BertLayer>> layers_;
  std::optional<Dense> pooler_;
};

// The word that stood at a masked position. The last product shares the words' weight.
class BertForMaskedLm : public Module {
 public:
  BertForMaskedLm(const BertOptions& options, ParameterInit& init);

  // `positions` (P): which tokens are asked for, as n L + l; undefined: all, P = N L.
  // -> (P, vocabulary). Only these rows enter the product with the vocabulary.
  Tensor logits(const BertInput& input, const Tensor& positions = {}) const;

 private:
  Bert bert_;
  Dense transform_;
  LayerNorm norm_;
  Tensor bias_;  // (vocabulary)
};

// Where an answer begins and ends (SQuAD).
class BertForSpans : public Module {
 public:
  BertForSpans(const BertOptions& options, ParameterInit& init);

  struct Logits {
    Tensor start, end;  // (N, L)
  };
  Logits logits(const BertInput& input) const;

  // Mean of the cross entropies of first and last token, starts and ends (N), int64.
  static Tensor loss(const Logits& logits, const Tensor& starts, const Tensor& ends);

 private:
  Bert bert_;
  Dense outputs_;
};

}  // namespace tidemark
