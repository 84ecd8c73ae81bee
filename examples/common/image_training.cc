#include "examples/common/image_training.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/checksum.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

constexpr int64_t kLargestSmallImage = 64;

std::unique_ptr<ImageModel> network(const ResNetFlags& flags, const DataSource& data,
                                    ParameterInit& init) {
  const bool small = data.sample[0] <= kLargestSmallImage;
  return make_image_model(
      flags.model,
      {.image = data.sample[0],
       .channels = data.sample[2],
       .classes = data.classes,
       .small_images = flags.stem == "cifar" || (flags.stem == "auto" && small)},
      init);
}

}  // namespace

ImageTraining::ImageTraining(const ResNetFlags& flags, const DataSource& data)
    : cosine_(flags.schedule == "cosine"),
      init_(flags.seed),
      model_(network(flags, data, init_)),
      optimizer_(
          make_optimizer(flags, model_->parameters(), flags.optimizer == "sgd" ? 0.05 : 1e-3)),
      base_rate_(optimizer_->learning_rate()) {
  model_->compute_in(flags.dtype);
}

void ImageTraining::set_learning_rate(int64_t step, int64_t steps) {
  if (!cosine_) return;
  const double done = static_cast<double>(step) / static_cast<double>(steps);
  optimizer_->set_learning_rate(base_rate_ * 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

ImageTraining::Input ImageTraining::upload(const HostBatch& batch) const {
  Session& session = Session::current();
  return {session.upload(TensorMeta::contiguous(DType::kFloat32, batch.shape), Category::kData,
                         batch.pixels.get(), batch.pixels, "images"),
          session.upload(TensorMeta::contiguous(DType::kInt64, Shape{batch.size}),
                         Category::kData, batch.labels.get(), batch.labels, "labels")};
}

StepOutcome ImageTraining::train(const HostBatch& batch) {
  model_->train();
  Tensor loss, correct;
  {
    Input input = upload(batch);
    const Tensor logits = model_->forward(input.images);
    loss = cross_entropy(logits, input.labels);
    const NoGrad no_grad;
    correct = accuracy_count(logits, input.labels);
  }
  backward(loss);
  optimizer_->step();
  return {read_scalar<float>(loss), read_scalar<int64_t>(correct), batch.size};
}

StepOutcome ImageTraining::evaluate(const HostBatch& batch) {
  const NoGrad no_grad;
  model_->train(false);
  const Input input = upload(batch);
  const Tensor logits = model_->forward(input.images);
  const Tensor loss = cross_entropy(logits, input.labels);
  const Tensor correct = accuracy_count(logits, input.labels);
  return {read_scalar<float>(loss), read_scalar<int64_t>(correct), batch.size};
}

std::optional<std::string> ImageTraining::checksum() const {
  const std::vector<NamedTensor> parameters = model_->parameters();
  const std::vector<NamedTensor> buffers = model_->buffers();
  return tensors_checksum({parameters, buffers, optimizer_->state()});
}

CarriedParts ImageTraining::carried() {
  CarriedParts parts{model_->parameters(), optimizer_.get()};
  for (const auto& more : {model_->buffers(), optimizer_->state()}) {
    parts.tensors.insert(parts.tensors.end(), more.begin(), more.end());
  }
  return parts;
}

HostBatch shape_only(const Shape& sample, int64_t size) {
  HostBatch batch;
  batch.size = size;
  batch.shape = Shape{size, sample[0], sample[1], sample[2]};
  return batch;
}

Program training_program(const ResNetFlags& flags, const DataSource& data,
                         const ImageSchedule& schedule) {
  std::vector<int64_t> train{schedule.batch, schedule.batch};
  const bool reaches_last =
      schedule.steps_per_epoch > 0 && schedule.steps >= schedule.steps_per_epoch;
  if (reaches_last && schedule.last_batch != schedule.batch)
    train.push_back(schedule.last_batch);
  std::vector<int64_t> test;
  if (data.test_size > 0) {
    test.push_back(std::min(schedule.batch, data.test_size));
    if (data.test_size % test[0] != 0) test.push_back(data.test_size % test[0]);
  }
  return [=] {
    const auto training = std::make_shared<ImageTraining>(flags, data);
    std::vector<std::function<void()>> steps;
    steps.reserve(train.size() + test.size());
    for (const int64_t size : train) {
      steps.emplace_back([=] { training->train(shape_only(data.sample, size)); });
    }
    for (const int64_t size : test) {
      steps.emplace_back([=] { training->evaluate(shape_only(data.sample, size)); });
    }
    return steps;
  };
}

}  // namespace tidemark
