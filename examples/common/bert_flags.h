// The command line of train_bert.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "examples/common/training_flags.h"
#include "models/text_models.h"
#include "ops/attention/attention.h"

namespace tidemark {

// Key in a checkpoint's settings: the network's sizes, in the form of a config.json.
constexpr const char* kConfigSetting = "config";
// Keys in the metadata that --save writes: the same sizes, and whether words are lower-cased.
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

  std::string task;             // "mlm", "clm" or "squad"; empty: the model's first
  std::string test;             // SQuAD file to evaluate on; empty: none
  std::string vocabulary;       // vocab.txt; empty: learnt from the text
  int64_t vocabulary_size = 0;  // rows of the network's table; 0: the file's, or the model's
  std::optional<bool> cased;    // none: as --load has it, else uncased
  int64_t length = 0;           // of sequences; 0: the task's default

  double dropout = 0.1;
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;
  int64_t warmup = 0;  // steps

  std::string save_vocabulary;  // file; empty: none

  bool model_given = false;  // --model was given, so --load must agree with it
  // Sizes from --load (a folder or file) or from the run that --resume continues; none: those
  // of --model.
  std::optional<TextModelInfo> config;

  const TextModelInfo& network() const { return config ? *config : text_model(model); }
  bool keeps_case() const { return cased.value_or(false); }
};

// Fills in flags that were not given; vocabulary_size only for --resume. The network's sizes
// come from the run that --resume continues, or from --load: a folder's config.json, or the
// metadata that --save wrote. If `load` is a folder, it becomes the weight file in it; with
// --resume, which reads no weights, it becomes empty. Throws UsageError for contradictory
// flags, DataError.
void complete(BertFlags& flags);

// Whether --model names a text network rather than one for images; read before other flags are
// parsed because they depend on it. Throws UsageError, which lists all networks, if it is
// neither. No --model, or one without a name: false.
bool trains_text(int argc, char** argv);

// Returns complete flags. Returns nothing if the program should exit now, with `exit_code`:
// after --help, or after a mistake, already explained on standard error.
std::optional<BertFlags> parse_bert_flags(int argc, char** argv, int& exit_code);

}  // namespace tidemark
