// The --data flag: what it means for sizes, and the datasets behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/resnet_flags.h"
#include "models/data/dataset.h"
#include "runtime/core/shape.h"

namespace tidemark {

struct DataSource {
  std::string kind;  // "digits", "mnist", ...
  std::string path;  // after the colon
  Shape sample;      // (H, W, C)
  int64_t classes = 0;
  int64_t train_size = 0;      // 0: not known without reading
  int64_t test_size = 0;       // 0: no test split
  int64_t default_epochs = 0;  // one of the two
  int64_t default_steps = 0;

  std::shared_ptr<const Dataset> train;  // null: not opened
  std::shared_ptr<const Dataset> test;
};

// From flags alone, without touching a file. Throws UsageError.
DataSource describe_data(const ResNetFlags& flags);
// With the datasets open, and their sizes. Throws UsageError, DataError.
DataSource open_data(const ResNetFlags& flags);

// What a run goes through.
struct ImageSchedule {
  int64_t batch = 0;
  int64_t steps = 0;            // in all
  int64_t steps_per_epoch = 0;  // 0: not known
  int64_t last_batch = 0;       // size of an epoch's last batch

  int64_t batch_of(int64_t step) const {  // 0-based
    return steps_per_epoch > 0 && (step + 1) % steps_per_epoch == 0 ? last_batch : batch;
  }
};
ImageSchedule make_schedule(const ResNetFlags& flags, const DataSource& data);

}  // namespace tidemark
