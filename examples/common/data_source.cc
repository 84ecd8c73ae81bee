#include "examples/common/data_source.h"

#include <algorithm>

#include "examples/common/bundled.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr int64_t kSyntheticSize = 100'000;

int64_t or_default(int64_t value, int64_t fallback) { return value > 0 ? value : fallback; }

}  // namespace

DataSource describe_data(const ResNetFlags& flags) {
  DataSource data;
  const size_t colon = flags.data.find(':');
  data.kind = flags.data.substr(0, colon);
  if (colon != std::string::npos) data.path = flags.data.substr(colon + 1);

  int64_t size = 224, channels = 3;
  data.classes = or_default(flags.classes, 1000);
  if (data.kind == "digits") {
    size = 16, channels = 1;
    data.classes = 10;
    data.train_size = 1437, data.test_size = 360;
    data.default_epochs = 6;
  } else if (data.kind == "synthetic") {
    data.train_size = kSyntheticSize;
    data.default_steps = 20;
  } else if (data.kind == "mnist") {
    size = 28, channels = 1;
    data.classes = 10;
    data.train_size = 60'000, data.test_size = 10'000;
    data.default_epochs = 1;
  } else if (data.kind == "cifar10") {
    size = 32;
    data.classes = 10;
    data.train_size = 50'000, data.test_size = 10'000;
    data.default_epochs = 1;
  } else if (data.kind == "folder") {
    data.default_epochs = 1;
  } else {
    throw UsageError(
        "--data must be digits, synthetic, mnist:DIR, cifar10:DIR or folder:DIR, not '" +
        flags.data + "'");
  }
  const bool wants_path =
      data.kind == "mnist" || data.kind == "cifar10" || data.kind == "folder";
  if (wants_path == data.path.empty()) {
    throw UsageError("--data: " + data.kind +
                     (wants_path ? " needs a directory, as in " + data.kind + ":DIR"
                                 : " takes no directory"));
  }
  size = or_default(flags.image_size, size);
  data.sample = Shape{size, size, channels};
  return data;
}

DataSource open_data(const ResNetFlags& flags) {
  DataSource data = describe_data(flags);
  const ImageOptions images{.size = data.sample[0]};
  const auto open = [&](Split split) -> std::shared_ptr<const Dataset> {
    if (data.kind == "digits")
      return open_digits(bundled_path("digits/digits.csv.gz"), split, images);
    if (data.kind == "mnist") return open_mnist(data.path, split, images);
    if (data.kind == "cifar10") return open_cifar10(data.path, split, images);
    if (data.kind == "folder") {
      return open_image_folder(data.path, split, {.image_size = data.sample[0]});
    }
    return make_synthetic(data.sample, data.classes, data.train_size, flags.seed);
  };
  data.train = open(Split::kTrain);
  if (data.kind != "synthetic") data.test = open(Split::kTest);
  data.sample = data.train->sample_shape();
  data.classes = data.train->classes();
  if (data.classes < 2) {
    throw DataError(data.path, "has one class folder; training needs at least two classes");
  }
  data.train_size = data.train->size();
  data.test_size = data.test ? data.test->size() : 0;
  return data;
}

ImageSchedule make_schedule(const ResNetFlags& flags, const DataSource& data) {
  ImageSchedule schedule;
  schedule.batch = flags.batch;
  if (data.train_size > 0) {
    schedule.batch = std::min(flags.batch, data.train_size);
    schedule.steps_per_epoch = (data.train_size + schedule.batch - 1) / schedule.batch;
    schedule.last_batch = data.train_size - (schedule.steps_per_epoch - 1) * schedule.batch;
  }
  schedule.steps = flags.steps;
  if (schedule.steps == 0 && flags.epochs == 0) schedule.steps = data.default_steps;
  if (schedule.steps == 0) {
    const int64_t epochs = or_default(flags.epochs, data.default_epochs);
    // Without known data, a few steps stand for all.
    schedule.steps = schedule.steps_per_epoch > 0 ? epochs * schedule.steps_per_epoch : 2;
  }
  return schedule;
}

}  // namespace tidemark
