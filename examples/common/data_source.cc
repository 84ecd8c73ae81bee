#include "examples/common/data_source.h"

#include <algorithm>

#include "examples/common/bundled.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr int64_t kSyntheticSize = 100'000;

int64_t or_default(int64_t value, int64_t fallback) { return value > 0 ? value : fallback; }

std::unique_ptr<Dataset> digits(const DataSource& data, Split split, uint64_t /*seed*/) {
  return open_digits(bundled_path("digits/digits.csv.gz"), split, {.size = data.sample[0]});
}
std::unique_ptr<Dataset> synthetic(const DataSource& data, Split split, uint64_t seed) {
  if (split != Split::kTrain) return nullptr;
  return make_synthetic(data.sample, data.classes, data.train_size, seed);
}
std::unique_ptr<Dataset> mnist(const DataSource& data, Split split, uint64_t /*seed*/) {
  return open_mnist(data.path, split, {.size = data.sample[0]});
}
std::unique_ptr<Dataset> cifar10(const DataSource& data, Split split, uint64_t /*seed*/) {
  return open_cifar10(data.path, split, {.size = data.sample[0]});
}
std::unique_ptr<Dataset> folder(const DataSource& data, Split split, uint64_t /*seed*/) {
  return open_image_folder(data.path, split, {.image_size = data.sample[0]});
}

// What --data can name. A directory follows the name, as in mnist:DIR, where `directory` is
// set.
struct Kind {
  const char* name;
  bool directory;
  int64_t size, channels;         // of an image, unless --image-size is given
  int64_t classes;                // 0: those of --classes
  int64_t train_size, test_size;  // 0: unknown before reading, or none
  int64_t epochs, steps;          // by default; either is set
  // Null: there is no such split.
  std::unique_ptr<Dataset> (*open)(const DataSource&, Split, uint64_t seed);
};
constexpr Kind kKinds[] = {
    {"digits", false, 16, 1, 10, 1437, 360, 6, 0, digits},
    {"synthetic", false, 224, 3, 0, kSyntheticSize, 0, 0, 20, synthetic},
    {"mnist", true, 28, 1, 10, 60'000, 10'000, 1, 0, mnist},
    {"cifar10", true, 32, 3, 10, 50'000, 10'000, 1, 0, cifar10},
    {"folder", true, 224, 3, 0, 0, 0, 1, 0, folder},
};

const Kind* find_kind(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace

std::string data_kinds() {
  std::string all;
  for (const Kind& kind : kKinds) {
    all += (all.empty() ? "" : ", ") + std::string(kind.name) + (kind.directory ? ":DIR" : "");
  }
  return all;
}

DataSource describe_data(const ResNetFlags& flags) {
  DataSource data;
  const size_t colon = flags.data.find(':');
  data.kind = flags.data.substr(0, colon);
  if (colon != std::string::npos) data.path = flags.data.substr(colon + 1);
  const Kind* kind = find_kind(data.kind);
  if (kind == nullptr) {
    throw UsageError("--data must be one of " + data_kinds() + ", not '" + flags.data + "'");
  }
  if (kind->directory == data.path.empty()) {
    throw UsageError("--data: " + data.kind +
                     (kind->directory ? " needs a directory, as in " + data.kind + ":DIR"
                                      : " takes no directory"));
  }
  data.classes = kind->classes > 0 ? kind->classes : or_default(flags.classes, 1000);
  data.train_size = kind->train_size;
  data.test_size = kind->test_size;
  data.default_epochs = kind->epochs;
  data.default_steps = kind->steps;
  const int64_t size = or_default(flags.image_size, kind->size);
  data.sample = Shape{size, size, kind->channels};
  return data;
}

DataSource open_data(const ResNetFlags& flags) {
  DataSource data = describe_data(flags);
  const auto open = [&, described = data](Split split) -> std::shared_ptr<const Dataset> {
    return find_kind(described.kind)->open(described, split, flags.seed);
  };
  data.train = open(Split::kTrain);
  data.test = open(Split::kTest);
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
