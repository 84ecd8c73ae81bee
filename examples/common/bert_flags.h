// The command line of train_bert.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "examples/common/training_flags.h"
#include "models/checkpoint/hugging_face.h"
#include "models/text_models.h"
#include "ops/attention/attention.h"

namespace tidemark {

// In a checkpoint's settings: the network's sizes, as a config.json has them.
constexpr const char* kConfigSetting = "config";
// In the metadata of what --save writes: the same, and whether the words are in lower case.
constexpr const char* kConfigMetadata = "config";
constexpr const char* kLowerCaseMetadata = "do_lower_case";

struct BertFlags : TrainingFlags {
  BertFlags() {
    model = "bert-tiny";
    optimizer = "adamw";
    schedule = "linear";
    weight_decay = 0.01;
    clip = 1;
  }

  std::string task;             // "mlm", "clm" or "squad"; filled in by the model
  std::string test;             // SQuAD file to evaluate on; empty: none
  std::string vocabulary;       // vocab.txt; empty: learnt from the text
  int64_t vocabulary_size = 0;  // rows of the network's table; 0: the file's, or the model's
  std::optional<bool> cased;    // none: as --load says, else not
  int64_t length = 0;           // of sequences; 0: the task's default

  double dropout = 0.1;
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;
  int64_t warmup = 0;  // steps

  std::string save_vocabulary;  // file; empty: none

  bool model_given = false;  // by --model, so that --load has to agree with it
  // Of the folder or file that --load was, or of the run that --resume goes on with; none: as
  // --model.
  std::optional<TextNetworkOptions> config;

  TextNetworkOptions network() const { return config ? *config : text_model_options(model); }
  bool is_gpt2() const { return std::holds_alternative<Gpt2Options>(network()); }
  // REQUIRES: is_gpt2(), or not.
  Gpt2Options gpt2() const { return std::get<Gpt2Options>(network()); }
  BertOptions bert() const { return std::get<BertOptions>(network()); }
  bool keeps_case() const { return cased.value_or(false); }
};

// Fills in what is left open; vocabulary_size only for --resume. The network's sizes come from
// the run that --resume goes on with, or from --load: a folder's config.json, or what --save
// wrote into the file. A folder becomes the file of weights in it; with --resume, which reads
// no weights, it becomes empty. Throws UsageError on what makes no sense together, DataError.
void complete(BertFlags& flags);

// Nothing if the program is to end now, with `exit_code`: after --help, or after a mistake,
// which has been explained on standard error. They are complete.
std::optional<BertFlags> parse_bert_flags(int argc, char** argv, int& exit_code);

}  // namespace tidemark
