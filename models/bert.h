// BERT (Devlin et al., 2018): a transformer encoder, and two of the heads it is trained with.
// Parameters have the names used by Hugging Face transformers, so those files load unchanged:
// "bert.encoder.layer.0.attention.self.query.weight".
//
// XLM-R (Conneau et al., 2019) is the same network with RoBERTa's conventions: 250,002 words,
// of which row 1 is padding; positions begin at row 2 of 514; one segment; norms use eps 1e-5;
// parameters are named "roberta...." and "lm_head....". Hugging Face gives padding tokens
// position 1; here their positions keep counting. The difference is invisible if padding is
// masked (BertInput::keys).
//
//   x = dropout(norm(words + positions + segments))                    (N, L, width)
//   layer: x = norm(x + dropout(attention(x)));  x = norm(x + dropout(outer(gelu(inner(x)))))
//
// Initial weights are normal with deviation 0.02; biases are 0; norms are 1 and 0; the row for
// padding is 0.
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
#include "models/text_model.h"

namespace tidemark {

struct BertOptions {
  int64_t vocabulary = 30522;
  int64_t positions = 512;     // rows of the position table
  int64_t first_position = 0;  // the row for a sequence's first token
  int64_t segments = 2;
  int64_t layers = 12;
  int64_t width = 768;
  int64_t heads = 12;
  int64_t inner = 3072;            // width between a layer's two dense layers
  double dropout = 0.1;            // in training mode
  double attention_dropout = 0.1;  // applied to attention's probabilities
  std::optional<int64_t> pad{0};   // the row of `words` for padding
  bool pooler = false;             // create the parameters of Bert::pooled()
  double norm_eps = 1e-12;
  bool roberta_names = false;  // parameters are named as in RoBERTa
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;

  int64_t longest() const { return positions - first_position; }  // sequence length
};

// "bert-tiny" (2 layers of 128), "bert-base", "bert-large", "xlm-roberta-base". Throws
// UsageError for other names.
BertOptions bert_options(const std::string& name);
// The same networks, for programs; tasks mlm and squad.
TextFamily bert_family();

struct BertInput {
  Tensor tokens;      // (N, L), int64 or int32
  Tensor segments{};  // (N, L), below options.segments; undefined: all 0
  // Which tokens exist: a count for each row, (N), or a mask, (N, L); undefined: all. See
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

// Predicts the word at each masked position. The last product shares the words' weight.
class BertForMaskedLm : public TextModel {
 public:
  BertForMaskedLm(const BertOptions& options, ParameterInit& init);
  TextOutput run(const TextInput& input) const override;

  // `positions` (P): the tokens to predict, as n L + l; undefined: all, P = N L. -> (P,
  // vocabulary). Only these rows are multiplied by the vocabulary.
  Tensor logits(const BertInput& input, const Tensor& positions = {}) const;

 private:
  Bert bert_;
  Dense transform_;
  LayerNorm norm_;
  Tensor bias_;  // (vocabulary)
};

// Predicts where an answer begins and ends (SQuAD).
class BertForSpans : public TextModel {
 public:
  BertForSpans(const BertOptions& options, ParameterInit& init);
  TextOutput run(const TextInput& input) const override;

  struct Logits {
    Tensor start, end;  // (N, L)
  };
  Logits logits(const BertInput& input) const;

  // Mean of the cross entropies for the first and the last token; starts and ends (N), int64.
  static Tensor loss(const Logits& logits, const Tensor& starts, const Tensor& ends);

 private:
  Bert bert_;
  Dense outputs_;
};

}  // namespace tidemark
