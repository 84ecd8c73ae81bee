// Flags of train_resnet and train_bert beyond those of all programs: files that a run reads and
// writes, and how gradients are computed.
#pragma once

#include <cstdint>
#include <string>

#include "examples/common/flags.h"

namespace tidemark {

struct TrainingFlags : RunFlags {
  // Files; empty: none.
  std::string load;                // weights to start from
  std::string save;                // weights at the end
  std::string checkpoint;          // everything needed to resume
  int64_t checkpoint_every = 100;  // steps
  bool resume = false;
  bool evaluate = false;  // only; no training

  int64_t accumulate = 1;      // micro-batches in a step
  double clip = 0;             // limit on the norm of all gradients; 0: none
  int64_t schedule_steps = 0;  // spanned by the learning rate's schedule; 0: all of the run

  bool keeps_files() const { return !load.empty() || !save.empty() || !checkpoint.empty(); }
  // Rows in a micro-batch of a batch of `rows`; an epoch's last batch may have fewer rows.
  int64_t micro_batch(int64_t rows) const {
    return accumulate == 1 ? rows : (batch + accumulate - 1) / accumulate;
  }
};

// Throws UsageError, naming the flag, if flags contradict each other. Reads no file.
void check(const TrainingFlags& flags);

}  // namespace tidemark
