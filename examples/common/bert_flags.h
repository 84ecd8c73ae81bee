// The command line of train_bert.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "examples/common/training_flags.h"
#include "models/bert.h"
#include "models/checkpoint/hugging_face.h"
#include "models/gpt2.h"
#include "ops/attention/attention.h"

namespace tidemark {

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
  bool cased = false;
  int64_t length = 0;  // of sequences; 0: the task's default

  double dropout = 0.1;
  AttentionImplementation attention = AttentionImplementation::kMemoryEfficient;
  int64_t warmup = 0;  // steps

  std::string save_vocabulary;  // file; empty: none

  bool model_given = false;  // by --model, so that --load has to agree with it
  // Of the config.json in the folder that --load was; none: as --model.
  std::optional<TextNetworkOptions> config;

  bool is_gpt2() const {
    return config ? std::holds_alternative<Gpt2Options>(*config) : model.starts_with("gpt2");
  }
  // REQUIRES: is_gpt2(), or not.
  Gpt2Options gpt2() const {
    return config ? std::get<Gpt2Options>(*config) : gpt2_options(model);
  }
  BertOptions bert() const {
    return config ? std::get<BertOptions>(*config) : bert_options(model);
  }
};

// Networks that these flags are for.
std::vector<std::string> text_model_names();
bool is_text_model(std::string_view name);

// Fills in what is left open but for vocabulary_size. If --load is a folder of Hugging Face's,
// takes the network's sizes from its config.json, and becomes the file of weights in it. Throws
// UsageError on what makes no sense together, DataError.
void complete(BertFlags& flags);

// Nothing if the program is to end now, with `exit_code`: after --help, or after a mistake,
// which has been explained on standard error. They are complete.
std::optional<BertFlags> parse_bert_flags(int argc, char** argv, int& exit_code);

}  // namespace tidemark
