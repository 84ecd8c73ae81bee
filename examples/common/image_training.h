// An image network with its optimizer, and its training and evaluation steps. The dry run and
// the real run both use this class, so they cannot differ.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/data_source.h"
#include "examples/common/resnet_flags.h"
#include "examples/common/training.h"
#include "models/data/loader.h"
#include "models/image_model.h"
#include "models/optim/optimizer.h"
#include "runtime/session/dry_run.h"

namespace tidemark {

class ImageTraining {
 public:
  // Makes the network in the current session. Throws UsageError, OutOfMemory.
  ImageTraining(const ResNetFlags& flags, const DataSource& data);

  // Sets the rate for step `step`, by the flags' schedule over `steps` steps.
  void set_learning_rate(int64_t step, int64_t steps);

  // Call within Session::step; both wait for the outcome.
  StepOutcome train(const HostBatch& batch);
  StepOutcome evaluate(const HostBatch& batch);

  ImageModel& model() { return *model_; }
  // Has neither state nor parameters in a run that only evaluates.
  Optimizer& optimizer() { return *optimizer_; }
  // Checksum of parameters, buffers and optimizer state.
  std::optional<std::string> checksum() const;
  CarriedParts carried();

 private:
  struct Input {
    Tensor images;
    Tensor labels;
  };
  Input upload(const HostBatch& batch) const;

  const ResNetFlags flags_;
  std::unique_ptr<ImageModel> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<NamedTensor> parameters_;
  double base_rate_;
};

// The learning rate that the flags select.
double base_rate(const ResNetFlags& flags);

// Checks, from its header alone, that the --load file (if any) fits the network. Throws
// UsageError, DataError.
void check_weights(const ResNetFlags& flags, const DataSource& data);

// A batch that has only a shape, for devices without data.
HostBatch shape_only(const Shape& sample, int64_t size);

// Every kind of step in a run of `schedule`.
Program training_program(const ResNetFlags& flags, const DataSource& data,
                         const ImageSchedule& schedule);

}  // namespace tidemark
