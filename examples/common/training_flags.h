// The flags that train_resnet and train_bert have beyond those of all programs: the files that
// a run starts from and leaves, and how a step's gradients are made.
#pragma once

#include <cstdint>
#include <string>

#include "examples/common/flags.h"

namespace tidemark {

struct TrainingFlags : RunFlags {
  // Files; empty: none.
  std::string load;                // weights to start from
  std::string save;                // weights at the end
  std::string checkpoint;          // all that it takes to go on
  int64_t checkpoint_every = 100;  // steps
  bool resume = false;
  bool evaluate = false;  // and do not train

  int64_t accumulate = 1;      // micro-batches in a step
  double clip = 0;             // largest norm of all gradients; 0: as they are
  int64_t schedule_steps = 0;  // that the learning rate's schedule spans; 0: all of the run's

  bool keeps_files() const { return !load.empty() || !save.empty() || !checkpoint.empty(); }
  // Rows in a micro-batch of a batch of `rows`, of which the last batch of an epoch has fewer.
  int64_t micro_batch(int64_t rows) const {
    return accumulate == 1 ? rows : (batch + accumulate - 1) / accumulate;
  }
};

// Throws UsageError that names the flag if these make no sense together. Reads no file.
void check(const TrainingFlags& flags);

}  // namespace tidemark
