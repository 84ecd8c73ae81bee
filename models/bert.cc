#include "models/bert.h"

#include "models/config_json.h"
#include "models/named.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/gelu.h"
#include "ops/elementwise/unary.h"
#include "ops/embedding/embedding.h"
#include "ops/linear/linear.h"
#include "ops/loss/loss.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

const std::vector<Named<BertOptions>>& table() {
  static const std::vector<Named<BertOptions>> entries{
      {"bert-tiny", {.layers = 2, .width = 128, .heads = 2, .inner = 512}},
      {"bert-base", {}},
      {"bert-large", {.layers = 24, .width = 1024, .heads = 16, .inner = 4096}},
      {"xlm-roberta-base",
       {.vocabulary = 250'002,
        .positions = 514,
        .first_position = 2,
        .segments = 1,
        .pad = 1,
        .norm_eps = 1e-5,
        .roberta_names = true}},
  };
  return entries;
}

MultiHeadAttentionOptions attention_options(const BertOptions& options) {
  MultiHeadAttentionOptions attention;
  attention.width = options.width;
  attention.heads = options.heads;
  attention.dropout = options.attention_dropout;
  attention.implementation = options.attention;
  attention.query = "self.query";
  attention.key = "self.key";
  attention.value = "self.value";
  attention.output = "output.dense";
  return attention;
}

EmbeddingOptions table_of(int64_t rows, const BertOptions& options) {
  return {.rows = rows, .columns = options.width, .deviation = 0.02};
}

const char* network_name(const BertOptions& options) {
  return options.roberta_names ? "roberta" : "bert";
}

EmbeddingOptions word_table(const BertOptions& options) {
  EmbeddingOptions words = table_of(options.vocabulary, options);
  words.padding_idx = options.pad;
  return words;
}

TextModelSizes sizes_of(const BertOptions& options) {
  return {options.layers, options.width, options.heads, options.inner, options.positions};
}

BertOptions read_config(const ConfigJson& config) {
  const bool roberta = config.text("model_type") != "bert";
  config.require("hidden_act", {"gelu"});
  config.require("position_embedding_type", {"absolute"});
  config.require_divisor("num_attention_heads", "hidden_size");
  BertOptions options = bert_options(roberta ? "xlm-roberta-base" : "bert-base");
  options.vocabulary = config.size("vocab_size");
  options.positions = config.size("max_position_embeddings");
  options.segments = config.size("type_vocab_size");
  options.layers = config.layers("num_hidden_layers");
  options.width = config.size("hidden_size");
  options.heads = config.size("num_attention_heads");
  options.inner = config.size("intermediate_size");
  options.norm_eps = config.eps("layer_norm_eps", options.norm_eps);
  if (options.longest() < 1) config.fail("max_position_embeddings", "leaves no positions");
  return options;
}

std::string config_of(const BertOptions& options) {
  return nlohmann::json{{"model_type", options.roberta_names ? "xlm-roberta" : "bert"},
                        {"vocab_size", options.vocabulary},
                        {"max_position_embeddings", options.positions},
                        {"type_vocab_size", options.segments},
                        {"num_hidden_layers", options.layers},
                        {"hidden_size", options.width},
                        {"num_attention_heads", options.heads},
                        {"intermediate_size", options.inner},
                        {"layer_norm_eps", options.norm_eps}}
      .dump();
}

// Head: BertForMaskedLm or BertForSpans.
template <class Head>
MakeTextModel with_head(const BertOptions& published) {
  return [published](const TextModelOptions& run, ParameterInit& init) {
    BertOptions options = published;
    options.vocabulary = run.vocabulary;
    options.pad = run.pad;
    options.dropout = options.attention_dropout = run.dropout;
    options.attention = run.attention;
    return std::make_unique<Head>(options, init);
  };
}

TextModelInfo describe(const BertOptions& options) {
  const std::string bert = network_name(options);
  TextModelInfo info{.family = "BERT",
                     .unnamed = "bert-like",
                     .tasks = {{"mlm", with_head<BertForMaskedLm>(options)},
                               {"squad", with_head<BertForSpans>(options)}},
                     .sizes = sizes_of(options),
                     .longest = options.longest(),
                     .vocabulary = options.vocabulary,
                     .words = bert + ".embeddings.word_embeddings.weight",
                     .positions = bert + ".embeddings.position_embeddings.weight",
                     .inner = bert + ".encoder.layer.0.intermediate.dense.weight",
                     .config = config_of(options)};
  if (options.roberta_names) info.words_format = "SentencePiece (sentencepiece.bpe.model)";
  // Small enough to be trained from the beginning on a CPU.
  if (info.sizes == sizes_of(bert_options("bert-tiny"))) {
    info.learnt_vocabulary = 8192;
    info.rate = 1e-3;
  }
  return info;
}

}  // namespace

BertOptions bert_options(const std::string& name) { return find_named(table(), name); }

TextFamily bert_family() {
  return {
      .models = mapped(table(), describe),
      .config_types = {"bert", "roberta", "xlm-roberta"},
      .from_config = [](const ConfigJson& config) { return describe(read_config(config)); }};
}

BertLayer::BertLayer(const BertOptions& options, ParameterInit& init)
    : attention_(attention_options(options), init),
      attention_norm_(options.width, init, options.norm_eps),
      inner_({.in = options.width, .out = options.inner}, init),
      outer_({.in = options.inner, .out = options.width}, init),
      norm_(options.width, init, options.norm_eps),
      dropout_(options.dropout) {
  register_child("attention", attention_);
  register_child("attention.output.LayerNorm", attention_norm_);
  register_child("intermediate.dense", inner_);
  register_child("output.dense", outer_);
  register_child("output.LayerNorm", norm_);
  register_child("dropout", dropout_);
}

Tensor BertLayer::forward(const Tensor& x, const Tensor& keys) const {
  const Scope scope(*this);
  const Tensor y =
      attention_norm_.forward(add(dropout_.forward(attention_.forward(x, keys)), x));
  return norm_.forward(
      add(dropout_.forward(outer_.forward(gelu(inner_.forward(y), GeluKind::kExact))), y));
}

Bert::Bert(const BertOptions& options, ParameterInit& init)
    : options_(options),
      words_(word_table(options), init),
      positions_(table_of(options.positions, options), init),
      segments_(table_of(options.segments, options), init),
      norm_(options.width, init, options.norm_eps),
      dropout_(options.dropout) {
  register_child("embeddings.word_embeddings", words_);
  register_child("embeddings.position_embeddings", positions_);
  register_child("embeddings.token_type_embeddings", segments_);
  register_child("embeddings.LayerNorm", norm_);
  register_child("embeddings.dropout", dropout_);
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.push_back(std::make_unique<BertLayer>(options, init));
    register_child("encoder.layer." + std::to_string(i), *layers_.back());
  }
  if (options.pooler) {
    pooler_.emplace(DenseOptions{.in = options.width, .out = options.width}, init);
    register_child("pooler.dense", *pooler_);
  }
}

Tensor Bert::embed(const BertInput& input) const {
  const Scope scope(*this);
  const Shape& shape = input.tokens.shape();
  if (shape.rank() != 2 || shape[1] > options_.longest()) {
    throw UsageError("[bert] tokens must be (N, L), L at most " +
                     std::to_string(options_.longest()) + ", not " + shape.to_string());
  }
  const Tensor positions = narrow(positions_.weight(), 0, options_.first_position, shape[1]);
  const Tensor words = words_.forward(input.tokens);
  if (!input.segments) {
    return add(words, add(positions, narrow(segments_.weight(), 0, 0, 1)));
  }
  return add(add(words, segments_.forward(input.segments)), positions);
}

Tensor Bert::forward(const BertInput& input) const {
  Tensor x = dropout_.forward(norm_.forward(embed(input)));
  for (const auto& layer : layers_) x = layer->forward(x, input.keys);
  return x;
}

Tensor Bert::pooled(const Tensor& x) const {
  const Scope scope(*this);
  if (!pooler_) throw UsageError("[bert] this model was created without a pooler");
  return tanh(pooler_->forward(squeeze(narrow(x, 1, 0, 1), 1)));
}

BertForMaskedLm::BertForMaskedLm(const BertOptions& options, ParameterInit& init)
    : bert_(options, init),
      transform_({.in = options.width, .out = options.width}, init),
      norm_(options.width, init, options.norm_eps),
      bias_(init.constant(Shape{options.vocabulary}, 0)) {
  const bool roberta = options.roberta_names;
  register_child(network_name(options), bert_);
  register_child(roberta ? "lm_head.dense" : "cls.predictions.transform.dense", transform_);
  register_child(roberta ? "lm_head.layer_norm" : "cls.predictions.transform.LayerNorm", norm_);
  register_parameter(roberta ? "lm_head.bias" : "cls.predictions.bias", bias_);
}

Tensor BertForMaskedLm::logits(const BertInput& input, const Tensor& positions) const {
  const Tensor x = bert_.forward(input);
  Tensor rows = reshape(x, {-1, x.extent(2)});
  if (positions) rows = embedding(rows, positions);
  const Tensor y = norm_.forward(gelu(transform_.forward(rows), GeluKind::kExact));
  return linear(y, bert_.word_weight(), bias_);
}

TextOutput BertForMaskedLm::run(const TextInput& input) const {
  refuse_packed(input, "bert");
  return score_words(logits({.tokens = input.tokens}, input.positions), input.labels);
}

BertForSpans::BertForSpans(const BertOptions& options, ParameterInit& init)
    : bert_(options, init), outputs_({.in = options.width, .out = 2}, init) {
  register_child(network_name(options), bert_);
  register_child("qa_outputs", outputs_);
}

BertForSpans::Logits BertForSpans::logits(const BertInput& input) const {
  const Tensor both = cast(outputs_.forward(bert_.forward(input)), DType::kFloat32);
  const std::vector<Tensor> parts = split(both, 2, 2);
  return {contiguous(squeeze(parts[0], 2)), contiguous(squeeze(parts[1], 2))};
}

Tensor BertForSpans::loss(const Logits& logits, const Tensor& starts, const Tensor& ends) {
  return scale(add(cross_entropy(logits.start, starts), cross_entropy(logits.end, ends)), 0.5);
}

TextOutput BertForSpans::run(const TextInput& input) const {
  refuse_packed(input, "bert");
  const Logits both =
      logits({.tokens = input.tokens, .segments = input.segments, .keys = input.lengths});
  return {.loss = loss(both, input.labels, input.ends), .start = both.start, .end = both.end};
}

}  // namespace tidemark
