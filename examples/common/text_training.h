// BERT or GPT-2 with its optimizer, and what one step of training and of evaluation does. The
// dry run and the real run are both made of this, so they cannot differ.
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
#include "runtime/session/dry_run.h"

namespace tidemark {

// A network with the head of its task.
class TextNetwork {
 public:
  struct Input {
    Tensor tokens, segments, lengths, positions, labels, ends;  // as TextBatch's
  };
  struct Output {
    Tensor loss;        // a scalar
    Tensor correct;     // how many guesses were right, a scalar; undefined for squad
    Tensor start, end;  // squad's logits
  };
  virtual ~TextNetwork() = default;
  virtual Output run(const Input& input) const = 0;
  virtual Module& module() = 0;
};

class TextTraining {
 public:
  // In the current session. Throws UsageError, OutOfMemory.
  TextTraining(const BertFlags& flags, const TextData& data);

  // For step `step`, by the schedule of the flags over `steps` steps.
  void set_learning_rate(int64_t step, int64_t steps);

  // To be called within Session::step; wait for the outcome.
  StepOutcome train(const TextBatch& batch);
  struct Answers {
    StepOutcome outcome;
    std::vector<float> start, end;  // squad's logits; empty without data
  };
  Answers evaluate(const TextBatch& batch);

  Module& model() { return network_->module(); }
  // Without state and parameters in a run that only evaluates.
  Optimizer& optimizer() { return *optimizer_; }
  // Over parameters and optimizer state.
  std::optional<std::string> checksum() const;
  CarriedParts carried();

 private:
  const BertFlags flags_;
  std::unique_ptr<TextNetwork> network_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<NamedTensor> parameters_;
  double rate_;
};

// That --load, if there is one, has what the network takes, by its header alone. Throws
// UsageError that names both sizes, DataError.
void check_weights(const BertFlags& flags, const TextData& data);

// The learning rate that the flags stand for.
double base_rate(const BertFlags& flags);

// All kinds of step that a run of `steps` will go through. `data` must outlive it.
Program training_program(const BertFlags& flags, TextData& data, int64_t steps);

}  // namespace tidemark
