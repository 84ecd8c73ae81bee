#include "examples/common/data_source.h"

#include <algorithm>

#include "examples/common/bundled.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr int64_t kSyntheticSize = 100'000;

int64_t or_default(int64_t value, int64_t fallback) { return value > 0 ? value : fallback; }

std::unique_ptr<Dataset> open_digits_data(const DataSource& data, Split split,
                                          uint64_t /*seed*/) {
  return open_digits(bundled_path("digits/digits.csv.gz"), split, {.size = data.sample[0]});
}
std::unique_ptr<Dataset> make_synthetic_data(const DataSource& data, Split split,
                                             uint64_t seed) {
  if (split != Split::kTrain) return nullptr;
  return make_synthetic(data.sample, data.classes, data.train_size, seed);
}
std::unique_ptr<Dataset> open_mnist_data(const DataSource& data, Split split,
                                         uint64_t /*seed*/) {
  return open_mnist(data.path, split, {.size = data.sample[0]});
}
std::unique_ptr<Dataset> open_cifar10_data(const DataSource& data, Split split,
                                           uint64_t /*seed*/) {
  return open_cifar10(data.path, split, {.size = data.sample[0]});
}
std::unique_ptr<Dataset> open_folder_data(const DataSource& data, Split split,
                                          uint64_t /*seed*/) {
  return open_image_folder(data.path, split, {.image_size = data.sample[0]});
}

struct Images {
  int64_t size;  // height and width, unless --image-size is given
  int64_t channels;
  int64_t classes = 0;          // 0: those of --classes
  int64_t train = 0, test = 0;  // how many; 0: unknown before reading
};
// What --data can name.
struct DataKind {
  const char* name;
  bool directory = false;  // follows the name, as in mnist:DIR
  Images images;
  int64_t epochs = 0, steps = 0;  // by default: exactly one of them is set
  // Null: there is no such split.
  std::unique_ptr<Dataset> (*open)(const DataSource&, Split, uint64_t seed);
};
constexpr DataKind kKinds[] = {
    {.name = "digits",
     .images = {.size = 16, .channels = 1, .classes = 10, .train = 1437, .test = 360},
     .epochs = 6,
     .open = open_digits_data},
    {.name = "synthetic",
     .images = {.size = 224, .channels = 3, .train = kSyntheticSize},
     .steps = 20,
     .open = make_synthetic_data},
    {.name = "mnist",
     .directory = true,
     .images = {.size = 28, .channels = 1, .classes = 10, .train = 60'000, .test = 10'000},
     .epochs = 1,
     .open = open_mnist_data},
    {.name = "cifar10",
     .directory = true,
     .images = {.size = 32, .channels = 3, .classes = 10, .train = 50'000, .test = 10'000},
     .epochs = 1,
     .open = open_cifar10_data},
    {.name = "folder",
     .directory = true,
     .images = {.size = 224, .channels = 3},
     .epochs = 1,
     .open = open_folder_data},
};

const DataKind* find_kind(const std::string& name) {
  for (const DataKind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace

std::string data_kinds() {
  std::string all;
  for (const DataKind& kind : kKinds) {
    all += (all.empty() ? "" : ", ") + std::string(kind.name) + (kind.directory ? ":DIR" : "");
  }
  return all;
}

DataSource describe_data(const ResNetFlags& flags) {
  DataSource data;
  const size_t colon = flags.data.find(':');
  data.kind = flags.data.substr(0, colon);
  if (colon != std::string::npos) data.path = flags.data.substr(colon + 1);
  const DataKind* kind = find_kind(data.kind);
  if (kind == nullptr) {
    throw UsageError("--data must be one of " + data_kinds() + ", not '" + flags.data + "'");
  }
  if (kind->directory ? data.path.empty() : colon != std::string::npos) {
    throw UsageError("--data: " + data.kind +
                     (kind->directory ? " needs a directory, as in " + data.kind + ":DIR"
                                      : " takes no directory"));
  }
  const Images& images = kind->images;
  data.classes = images.classes > 0 ? images.classes : or_default(flags.classes, 1000);
  data.train_size = images.train;
  data.test_size = images.test;
  data.default_epochs = kind->epochs;
  data.default_steps = kind->steps;
  const int64_t size = or_default(flags.image_size, images.size);
  data.sample = Shape{size, size, images.channels};
  return data;
}

DataSource open_data(const ResNetFlags& flags) {
  DataSource data = describe_data(flags);
  const DataKind& kind = *find_kind(data.kind);
  data.train = kind.open(data, Split::kTrain, flags.seed);
  data.test = kind.open(data, Split::kTest, flags.seed);
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
