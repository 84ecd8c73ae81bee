// A language model with its optimizer, and its training and validation steps. The dry run and
// the real run both use this class, so they cannot differ.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/training.h"
#include "examples/finetune/finetune_flags.h"
#include "models/llama.h"
#include "models/optim/optimizer.h"
#include "models/text/tokenizer/tokenizer_files.h"
#include "models/text/tuning/tuning_batches.h"

namespace tidemark {

class Tuning {
 public:
  // Makes the network in the current session, with the changes of LoRA; all weights are 0 until
  // load(). Throws UsageError, OutOfMemory.
  explicit Tuning(const FinetuneFlags& flags);

  // Reads the weights of --model, and --adapter if there is one. Throws DataError.
  void load();
  // On devices without data: takes the memory that load() takes.
  void simulate_load();
  // The same for what --merge computes.
  void simulate_merge();

  // Sets the rate for step `step` of a schedule over `steps` steps.
  void set_learning_rate(int64_t step, int64_t steps);
  // Both are called within Session::step and wait for the outcome. A loss is the mean over the
  // labels that count. A batch without values stands for one of its size.
  StepOutcome train(const TuningBatch& batch);
  StepOutcome evaluate(const TuningBatch& batch);

  // Writes the folder of --output; `tokenizer`: the files of the tokenizer that go with a
  // network from a GGUF file. Throws DataError.
  void save(const std::vector<NamedText>& tokenizer);

  Llama& network() { return *network_; }
  Optimizer& optimizer() { return *optimizer_; }
  // Of trained parameters and optimizer state.
  std::optional<std::string> checksum() const;
  CarriedParts carried();

 private:
  Forward forward(const TuningBatch& batch, const Tensor& scale);

  const FinetuneFlags& flags_;
  std::unique_ptr<Llama> network_;
  std::vector<NamedTensor> trained_;
  std::unique_ptr<Optimizer> optimizer_;
  double rate_;
};

// The learning rate that the flags select.
double base_rate(const FinetuneFlags& flags);

// Whether the folder of --output gets a whole network, not an adapter.
bool saves_network(const FinetuneFlags& flags);

}  // namespace tidemark
