// A network for images with its optimizer, and what one step of training and of evaluation
// does. The dry run and the real run are both made of this, so they cannot differ.
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
  // In the current session. Throws UsageError, OutOfMemory.
  ImageTraining(const ResNetFlags& flags, const DataSource& data);

  // For step `step`, by the schedule of the flags over `steps` steps.
  void set_learning_rate(int64_t step, int64_t steps);

  // To be called within Session::step; wait for the outcome.
  StepOutcome train(const HostBatch& batch);
  StepOutcome evaluate(const HostBatch& batch);

  ImageModel& model() { return *model_; }
  // Without state and parameters in a run that only evaluates.
  Optimizer& optimizer() { return *optimizer_; }
  // Over parameters, buffers and optimizer state.
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

// The learning rate that the flags stand for.
double base_rate(const ResNetFlags& flags);

// That --load, if there is one, has what the network takes, by its header alone. Throws
// UsageError, DataError.
void check_weights(const ResNetFlags& flags, const DataSource& data);

// A batch of a size alone, for devices without data.
HostBatch shape_only(const Shape& sample, int64_t size);

// All kinds of step that a run of `schedule` will go through.
Program training_program(const ResNetFlags& flags, const DataSource& data,
                         const ImageSchedule& schedule);

}  // namespace tidemark
