// A text network with its optimizer, and its training and evaluation steps. The dry run and the
// real run both use this class, so they cannot differ.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/bert_flags.h"
#include "examples/common/text_data.h"
#include "examples/common/training.h"
#include "models/optim/optimizer.h"
#include "models/text_model.h"
#include "runtime/session/dry_run.h"

namespace tidemark {

class TextTraining {
 public:
  // Makes the network in the current session. Throws UsageError, OutOfMemory.
  TextTraining(const BertFlags& flags, const TextData& data);

  // Sets the rate for step `step`, by the flags' schedule over `steps` steps.
  void set_learning_rate(int64_t step, int64_t steps);

  // Call within Session::step; waits for the outcome.
  StepOutcome train(const TextBatch& batch);
  struct Answers {
    StepOutcome outcome;
    std::vector<float> start, end;  // squad's logits; empty without data
  };
  Answers evaluate(const TextBatch& batch);

  Module& model() { return *network_; }
  // Has neither state nor parameters in a run that only evaluates.
  Optimizer& optimizer() { return *optimizer_; }
  // Checksum of parameters and optimizer state.
  std::optional<std::string> checksum() const;
  CarriedParts carried();

 private:
  const BertFlags flags_;
  std::unique_ptr<TextModel> network_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<NamedTensor> parameters_;
  double rate_;
};

// Checks, from its header alone, that the --load file (if any) fits the network. Throws
// UsageError that names both sizes, DataError.
void check_weights(const BertFlags& flags, const TextData& data);

// The learning rate that the flags select.
double base_rate(const BertFlags& flags);

// Every kind of step in a run of `steps`. `data` must outlive the program.
Program training_program(const BertFlags& flags, TextData& data, int64_t steps);

}  // namespace tidemark
