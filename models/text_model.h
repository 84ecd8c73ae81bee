// The interface of all text networks, and what programs know about one. text_models.h finds
// them by name.
//
// Parameters have the names that Hugging Face transformers uses, so that its files load
// unchanged.
//
// Threads: networks, the session's issuing thread; the rest are values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/named.h"
#include "models/nn/module.h"
#include "models/nn/parameter_init.h"
#include "ops/attention/attention.h"

namespace tidemark {

class ConfigJson;

// The input of a step for one of the tasks "mlm" (predict masked words), "clm" (predict the
// next word) and "squad" (find an answer in a text). A task leaves the tensors of others
// undefined.
struct TextInput {
  Tensor tokens;       // (N, L), int64
  Tensor segments{};   // (N, L), squad: 1 in the text
  Tensor lengths{};    // (N), squad: the number of tokens that exist
  Tensor positions{};  // (P), mlm: the tokens to predict, as n L + l
  // mlm (P): the tokens there; clm (N L): the token after each, for Llama and its kin also
  // kIgnoreLabel (models/text/token_batch.h); squad (N): the answer's first.
  Tensor labels{};
  // clm, Llama and its kin: a scalar. If given, the loss is the sum over the labels that count,
  // times this, instead of their mean.
  Tensor loss_scale{};
  Tensor ends{};  // (N), squad: the answer's last token
  // clm, Llama and its kin: sequences packed into one row. (N, L), int32: where in its row a
  // token's sequence begins, which is the first token that it attends to. Undefined: a row is
  // one sequence.
  Tensor starts{};
};

struct TextOutput {
  Tensor loss;            // a scalar
  Tensor correct{};       // number of right guesses, a scalar; undefined for squad
  Tensor start{}, end{};  // squad: logits (N, L)
};

// A network with the head for one task.
class TextModel : public Module {
 public:
  // Throws UsageError if shapes do not fit.
  virtual TextOutput run(const TextInput& input) const = 0;
};

// Throws UsageError, beginning with `network`, if the input has what only Llama and its kin
// take: loss_scale or starts.
void refuse_packed(const TextInput& input, const char* network);

// The output of a network that predicts words: logits (P, vocabulary), labels (P). The loss is
// the mean cross entropy.
TextOutput score_words(const Tensor& logits, const Tensor& labels);
// The same without the logits, which are rows (P, width) times weight (vocabulary, width)
// transposed. Takes `labels` and `loss_scale` of the input.
TextOutput score_words(const Tensor& rows, const Tensor& weight, const TextInput& input);

// What a run may choose about a network of given sizes.
struct TextModelOptions {
  int64_t vocabulary = 0;  // rows of the word table
  int64_t pad = 0;         // the row for padding, if the task pads
  // Everywhere, attention's probabilities included; in training mode. Not for Llama and its
  // kin.
  double dropout = 0.1;
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;
  // The longest sequence, for tables of positions that are not trained; 0: as published.
  int64_t longest = 0;
};

// Makes a network in the current session. Throws OutOfMemory.
using MakeTextModel =
    std::function<std::unique_ptr<TextModel>(const TextModelOptions&, ParameterInit&)>;

// Sizes that must agree for one network's weights to fit another, apart from the vocabulary's
// rows. 0: unknown.
struct TextModelSizes {
  int64_t layers = 0, width = 0, heads = 0, inner = 0;
  int64_t positions = 0;  // rows of the position table; 0 also if there is no table

  bool operator==(const TextModelSizes&) const = default;
};
// Describes the sizes that both know and that differ: "2 layers, hidden size 32; gpt2 has 12
// layers, hidden size 768", with `theirs` called `name`. Empty if they agree.
std::string difference(const TextModelSizes& ours, const TextModelSizes& theirs,
                       const std::string& name);

// A network of given sizes.
struct TextModelInfo {
  std::string family{};   // in messages: "BERT"
  std::string unnamed{};  // the name if no model in the table has these sizes: "bert-like"
  std::vector<Named<MakeTextModel>> tasks{};  // at least one; the first is the default

  TextModelSizes sizes{};
  int64_t longest = 0;     // sequence
  int64_t vocabulary = 0;  // as published

  // Defaults of programs, if a network needs its own: the size of a vocabulary that is learnt
  // from the training text [as published], and the learning rate for mlm and clm [1e-4].
  std::optional<int64_t> learnt_vocabulary{};
  std::optional<double> rate{};

  // Names of parameters from which a file's header gives the sizes. Names of heads begin with
  // another part than these do.
  std::string words{};      // the word table, (vocabulary, width)
  std::string positions{};  // the position table, (positions, width); empty: there is none
  std::string inner{};      // in layer 0, written ".0.": (inner, width) or (width, inner)

  std::string words_format{};  // of the published vocabulary; empty: WordPiece
  std::string config{};        // a config.json with these sizes, in one line

  // Throws UsageError if the network is not made for the task, OutOfMemory.
  std::unique_ptr<TextModel> make(const std::string& task, const TextModelOptions& options,
                                  ParameterInit& init) const;
  // `config` with another size of the vocabulary.
  std::string config_with(int64_t vocabulary_size) const;
};

// Networks that share their code: an entry in the table of text_models.cc.
struct TextFamily {
  std::vector<Named<TextModelInfo>> models{};
  std::vector<std::string> config_types{};  // values of "model_type" in config.json
  // The network that a config.json of these types describes. Throws DataError, naming the key,
  // if a key is missing or asks for something that the network does not implement.
  std::function<TextModelInfo(const ConfigJson&)> from_config{};
};

}  // namespace tidemark
