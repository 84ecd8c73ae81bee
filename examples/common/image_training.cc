#include "examples/common/image_training.h"

#include <algorithm>

#include "models/checkpoint/torchvision.h"
#include "models/checkpoint/weight_file.h"
#include "models/checkpoint/weights.h"
#include "models/checksum.h"
#include "models/image_models.h"
#include "models/optim/clip.h"
#include "models/optim/schedule.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

constexpr int64_t kLargestSmallImage = 64;

bool is_small(const ResNetFlags& flags, const DataSource& data) {
  return flags.stem == "cifar" ||
         (flags.stem == "auto" && data.sample[0] <= kLargestSmallImage);
}

std::unique_ptr<ImageModel> network(const ResNetFlags& flags, const DataSource& data) {
  ParameterInit init(flags.seed);
  return make_image_model(flags.model,
                          {.image = data.sample[0],
                           .channels = data.sample[2],
                           .classes = data.classes,
                           .small_images = is_small(flags, data)},
                          init);
}

// A part of `batch`, in its memory.
HostBatch rows_of(const HostBatch& batch, const MicroBatch& part) {
  HostBatch rows = batch;
  rows.size = rows.shape[0] = part.size;
  if (!batch.pixels) return rows;
  const int64_t pixels = batch.shape.elements() / batch.size;
  rows.pixels = {batch.pixels, batch.pixels.get() + part.begin * pixels};
  rows.labels = {batch.labels, batch.labels.get() + part.begin};
  return rows;
}

}  // namespace

double base_rate(const ResNetFlags& flags) {
  return flags.learning_rate.value_or(flags.optimizer == "sgd" ? 0.05 : 1e-3);
}

ImageTraining::ImageTraining(const ResNetFlags& flags, const DataSource& data)
    : flags_(flags),
      model_(network(flags, data)),
      optimizer_(make_optimizer(
          flags, flags.evaluate ? std::vector<NamedTensor>() : model_->parameters(),
          base_rate(flags))),
      parameters_(model_->parameters()),
      base_rate_(optimizer_->learning_rate()) {
  model_->compute_in(flags.dtype);
}

void ImageTraining::set_learning_rate(int64_t step, int64_t steps) {
  optimizer_->set_learning_rate(learning_rate(
      {.kind = *parse_schedule(flags_.schedule), .rate = base_rate_, .total_steps = steps},
      step));
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
  const auto forward = [&](const MicroBatch& part) {
    const Input input = upload(rows_of(batch, part));
    const Tensor logits = model_->forward(input.images);
    Forward result{.loss = cross_entropy(logits, input.labels), .guesses = part.size};
    const NoGrad no_grad;
    result.correct = accuracy_count(logits, input.labels);
    return result;
  };
  return train_step(micro_batches(batch.size, flags_.micro_batch(batch.size)), forward, [&] {
    if (flags_.clip > 0) clip_grad_norm_(parameters_, flags_.clip);
    optimizer_->step();
  });
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
  const std::vector<NamedTensor> buffers = model_->buffers();
  return tensors_checksum({parameters_, buffers, optimizer_->state()});
}

CarriedParts ImageTraining::carried() {
  CarriedParts parts{parameters_, optimizer_.get()};
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
  std::vector<int64_t> train, test;
  if (!flags.evaluate) {
    train = {schedule.batch, schedule.batch};
    const bool reaches_last =
        schedule.steps_per_epoch > 0 && schedule.steps >= schedule.steps_per_epoch;
    if (reaches_last && schedule.last_batch != schedule.batch)
      train.push_back(schedule.last_batch);
  }
  // Without known data, one batch stands for all.
  const int64_t tests = data.test_size > 0 ? data.test_size
                        : flags.evaluate   ? schedule.batch
                                           : 0;
  if (tests > 0) {
    test.push_back(std::min(schedule.batch, tests));
    if (tests % test[0] != 0) test.push_back(tests % test[0]);
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
    if (!flags.load.empty() || flags.resume) {
      steps.emplace_back([=] { simulate_load(training->carried().tensors); });
    }
    if (!flags.load.empty()) {
      steps.emplace_back([=] { rearrange_from_torchvision(training->model()); });
    }
    if (!flags.save.empty()) {
      steps.emplace_back([=] { torchvision_tensors(training->model()); });
    }
    return steps;
  };
}

void check_weights(const ResNetFlags& flags, const DataSource& data) {
  if (flags.load.empty()) return;
  const auto file = open_weights(flags.load);
  Session session({.device = "sim:host",
                   .threads = 1,
                   .budget = Bytes(int64_t{1} << 50),
                   .policy = "none"});
  try {
    check_torchvision(*network(flags, data), *file);
  } catch (const DataError& error) {
    std::string more = "--load: " + std::string(error.what()) + " (" + flags.model;
    if (is_small(flags, data)) more += ", whose first layers are those of --stem cifar";
    throw UsageError(more + ')');
  }
}

}  // namespace tidemark
