// The interface between the programs' run loop (run.h) and a network in training.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/flags.h"
#include "models/optim/optimizer.h"
#include "runtime/session/dry_run.h"
#include "runtime/session/session.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Empty on devices without data.
struct StepOutcome {
  std::optional<float> loss{};       // mean over the batch
  std::optional<int64_t> correct{};  // right ones among `guesses`
  int64_t guesses = 0;
  int64_t tokens = 0;  // of the step, without padding; 0: not counted
};

// Results on data that were not used for training.
struct Evaluation {
  std::optional<double> accuracy{};
  std::string of = "images";                             // the unit of accuracy
  std::vector<std::pair<std::string, double>> scores{};  // other scores, by their JSON names
};

// All state that persists between steps, except the random stream and the position in the data.
// Used to continue a run in another session.
struct CarriedParts {
  std::vector<NamedTensor> tensors;  // parameters, buffers, optimizer state
  Optimizer* optimizer = nullptr;    // its learning rate and counts
};

// A network with its optimizer and data, in the session that was current at construction.
class Training {
 public:
  virtual ~Training() = default;

  // Steps completed earlier: above 0 in a resumed run.
  virtual int64_t first_step() const { return 0; }
  // Prepares step `step` (0-based): fetches its batch and sets the learning rate. Usually the
  // next step, but any step is allowed.
  virtual void prepare(int64_t step) = 0;
  // Runs the step, within Session::step; waits for the outcome.
  virtual StepOutcome step() = 0;
  // Called after each step; `done` steps are complete. May run steps of its own, and returns
  // the loss on data that are not trained on, if it was found.
  virtual std::optional<double> after_step(int64_t /*done*/) { return {}; }
  // Whether training no longer helps, so that no more steps are needed.
  virtual bool finished() const { return false; }
  // Called after the last step, also of an interrupted run: releases what only training needs.
  virtual void stop(int64_t /*done*/) {}
  // Checksum of parameters, buffers and optimizer state.
  virtual std::optional<std::string> checksum() const = 0;
  virtual CarriedParts carried() = 0;
  // Called after stop(); runs its own steps.
  virtual Evaluation evaluate(Session& /*session*/) { return {}; }
};

// A program's work, once its flags are parsed and its data open.
class Job {
 public:
  virtual ~Job() = default;
  virtual int64_t batch() const = 0;
  virtual int64_t steps() const = 0;
  virtual std::string announcement() const = 0;  // one line
  // Upper bound on the host memory of the job's data, including evaluation: the open data sets
  // and the loaders of their batches. Without data, the part of this that is known.
  virtual Bytes loading_bytes() const { return Bytes(0); }
  // Every kind of step in the run.
  virtual Program dry_run() const = 0;
  // The algorithms with which an earlier part of the run began; null: none were chosen yet.
  virtual std::shared_ptr<const AlgorithmTable> algorithms() const { return nullptr; }
  // Starts in the current session. Throws UsageError, DataError, OutOfMemory.
  virtual std::unique_ptr<Training> start() const = 0;
};

// A name for make_optimizer that only captures use.
inline constexpr const char* kUnfusedAdam = "adam-unfused";

// Makes the optimizer that the flags select; `rate` is used if they give no rate. `storage`: of
// "adam" and "adamw".
std::unique_ptr<Optimizer> make_optimizer(const RunFlags& flags,
                                          std::vector<NamedTensor> parameters, double rate,
                                          const AdamStorage& storage = {});

// Rows [begin, begin + size) of a batch.
struct MicroBatch {
  int64_t begin = 0;
  int64_t size = 0;
};
// Cuts a batch of `rows` rows into parts of `size`; the last may have fewer.
std::vector<MicroBatch> micro_batches(int64_t rows, int64_t size);

// The result of a forward pass over a micro-batch.
struct Forward {
  Tensor loss;       // a scalar, the mean over its guesses
  Tensor correct{};  // a scalar; may be undefined
  int64_t guesses = 0;
  // Whether the loss is the micro-batch's share of the step's loss already, instead of its own
  // mean, which counts by its rows.
  bool is_share = false;
};
// A training step: forward and backward for each part in order, then `update`. The gradients
// and the returned loss are those of the mean over all parts.
StepOutcome train_step(const std::vector<MicroBatch>& parts,
                       const std::function<Forward(const MicroBatch&)>& forward,
                       const std::function<void()>& update);

// Waits for the value; nullopt on devices without data.
template <class T>
std::optional<T> read_scalar(const Tensor& tensor) {
  T value{};
  if (!Session::current().download(tensor, &value)) return std::nullopt;
  return value;
}

}  // namespace tidemark
