// The --data flag: the sizes it implies, and the datasets it opens.
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
  int64_t train_size = 0;      // 0: unknown before reading
  int64_t test_size = 0;       // 0: no test split
  int64_t default_epochs = 0;  // either steps or epochs is set
  int64_t default_steps = 0;

  std::shared_ptr<const Dataset> train;  // null: not opened
  std::shared_ptr<const Dataset> test;
};

// "digits, synthetic, mnist:DIR, ...".
std::string data_kinds();

// Describes the data from flags alone, without touching a file. Throws UsageError.
DataSource describe_data(const ResNetFlags& flags);
// Opens the datasets and gives their sizes. Throws UsageError, DataError.
DataSource open_data(const ResNetFlags& flags);

// The steps of a run.
struct ImageSchedule {
  int64_t batch = 0;
  int64_t steps = 0;            // in total
  int64_t steps_per_epoch = 0;  // 0: unknown
  int64_t last_batch = 0;       // size of an epoch's last batch

  int64_t batch_of(int64_t step) const {  // 0-based
    return steps_per_epoch > 0 && (step + 1) % steps_per_epoch == 0 ? last_batch : batch;
  }
};
ImageSchedule make_schedule(const ResNetFlags& flags, const DataSource& data);

}  // namespace tidemark
