// The command line of train_bert.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "examples/common/flags.h"
#include "ops/attention/attention.h"

namespace tidemark {

struct BertFlags : RunFlags {
  BertFlags() {
    model = "bert-tiny";
    optimizer = "adamw";
    schedule = "linear";
    weight_decay = 0.01;
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
  double clip = 1;     // largest norm of all gradients; 0: as they are

  // Files; empty: none.
  std::string weights;  // to start from
  std::string save;     // weights at the end
  std::string save_vocabulary;
  std::string checkpoint;
  int64_t checkpoint_every = 100;  // steps
  bool resume = false;

  bool is_gpt2() const { return model.starts_with("gpt2"); }
};

// Networks that these flags are for.
std::vector<std::string> text_model_names();
bool is_text_model(std::string_view name);

// Fills in what is left open but for vocabulary_size. Throws UsageError on what makes no sense
// together.
void complete(BertFlags& flags);

// Nothing if the program is to end now, with `exit_code`: after --help, or after a mistake,
// which has been explained on standard error. They are complete.
std::optional<BertFlags> parse_bert_flags(int argc, char** argv, int& exit_code);

}  // namespace tidemark
