// Training steps of any shape, on made-up values, for programs that ask what fits, or how
// memory behaves when every step differs from the last. Memory depends on shapes alone.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/bert_flags.h"
#include "examples/common/resnet_flags.h"
#include "examples/common/training.h"

namespace tidemark {

struct StepShape {
  int64_t batch = 0;  // images or sequences
  int64_t size = 0;   // height and width of images, tokens of a sequence
  bool operator==(const StepShape&) const = default;
};

// A network with its optimizer, in the session that was current at construction.
class ShapedTraining {
 public:
  virtual ~ShapedTraining() = default;
  // Call within Session::step; waits for the outcome.
  virtual StepOutcome step(const StepShape& shape) = 0;
  // Checksum of parameters, buffers and optimizer state.
  virtual std::optional<std::string> checksum() const = 0;
  // Host memory that the values occupy now.
  virtual Bytes data_bytes() const = 0;
};

class ShapedJob {
 public:
  virtual ~ShapedJob() = default;
  virtual StepShape shape() const = 0;     // requested by the flags
  virtual std::string things() const = 0;  // "images", "sequences"
  virtual std::string announcement() const = 0;
  // The sizes that steps may have, up to shape().size, ascending.
  virtual std::vector<int64_t> sizes() const = 0;
  // Host memory that the values of a step of this shape occupy.
  virtual Bytes data_bytes(const StepShape& shape) const = 0;
  // Makes the network in the current session. Throws UsageError, OutOfMemory.
  virtual std::unique_ptr<ShapedTraining> start() const = 0;
};

// Uses only the image shape and the number of classes of --data. Throws UsageError.
std::unique_ptr<ShapedJob> make_shaped_job(const ResNetFlags& flags);
// REQUIRES: complete flags. Throws UsageError, DataError.
std::unique_ptr<ShapedJob> make_shaped_job(const BertFlags& flags);

// For dry runs: each shape twice, because the second step is the first that finds all state in
// place. `job` must outlive the program.
Program shaped_program(const ShapedJob& job, std::vector<StepShape> shapes);

}  // namespace tidemark
