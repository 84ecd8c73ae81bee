// What the programs' run loop (run.h) asks of a network in training, and what those share.
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

// Nothing on devices without data.
struct StepOutcome {
  std::optional<float> loss{};       // mean over the batch
  std::optional<int64_t> correct{};  // of `guesses` that the batch asks for
  int64_t guesses = 0;
};

// How well it does on data that it was not trained on.
struct Evaluation {
  std::optional<double> accuracy{};
  std::string of = "images";                             // what accuracy is a share of
  std::vector<std::pair<std::string, double>> scores{};  // others, by their names in the JSON
};

// All that goes on from step to step, but for the random stream and the place in the data: for
// whoever carries a run over to another session.
struct CarriedParts {
  std::vector<NamedTensor> tensors;  // parameters, buffers, optimizer state
  Optimizer* optimizer = nullptr;    // its learning rate and counts
};

// A network with its optimizer and its data, in the session that was current when it was made.
class Training {
 public:
  virtual ~Training() = default;

  // Steps that were done before: more than 0 for a run that goes on.
  virtual int64_t first_step() const { return 0; }
  // Before step `step`, counted from 0: gets its batch and sets the learning rate. Usually the
  // next one, but any will do.
  virtual void prepare(int64_t step) = 0;
  // The step itself, within Session::step; waits for the outcome.
  virtual StepOutcome step() = 0;
  // After it: `done` steps are.
  virtual void after_step(int64_t /*done*/) {}
  // After the last, also of an interrupted run: lets go of what only training needs.
  virtual void stop(int64_t /*done*/) {}
  // Over parameters, buffers and optimizer state.
  virtual std::optional<std::string> checksum() const = 0;
  virtual CarriedParts carried() = 0;
  // After stop(), in steps of its own.
  virtual Evaluation evaluate(Session& /*session*/) { return {}; }
};

// What a program is to do, once its flags are understood and its data open.
class Job {
 public:
  virtual ~Job() = default;
  virtual int64_t batch() const = 0;
  virtual int64_t steps() const = 0;
  virtual std::string announcement() const = 0;  // one line
  // Host memory that its data take at most, evaluation included: the data sets as they are
  // open, and what loads batches of them. Without data, what is known of it.
  virtual Bytes loading_bytes() const { return Bytes(0); }
  // All kinds of step that the run will go through.
  virtual Program dry_run() const = 0;
  // In the current session. Throws UsageError, DataError, OutOfMemory.
  virtual std::unique_ptr<Training> start() const = 0;
};

// The optimizer of models/optim that only captures ask for.
inline constexpr const char* kUnfusedAdam = "adam-unfused";

// By the flags; `rate` is what the flags leave open.
std::unique_ptr<Optimizer> make_optimizer(const RunFlags& flags,
                                          std::vector<NamedTensor> parameters, double rate);

// Rows [begin, begin + size) of a batch.
struct MicroBatch {
  int64_t begin = 0;
  int64_t size = 0;
};
// `rows` of a batch, cut into parts of `size` rows; the last may have fewer.
std::vector<MicroBatch> micro_batches(int64_t rows, int64_t size);

// What a network makes of a micro-batch.
struct Forward {
  Tensor loss;       // a scalar, the mean over its guesses
  Tensor correct{};  // a scalar; may be undefined
  int64_t guesses = 0;
};
// A training step: forward and backward for each part in order, then `update`. Gradients, and
// the loss that is given, are those of the mean over all parts.
StepOutcome train_step(const std::vector<MicroBatch>& parts,
                       const std::function<Forward(const MicroBatch&)>& forward,
                       const std::function<void()>& update);

// Waits for the value; nothing on devices without data.
template <class T>
std::optional<T> read_scalar(const Tensor& tensor) {
  T value{};
  if (!Session::current().download(tensor, &value)) return std::nullopt;
  return value;
}

}  // namespace tidemark
