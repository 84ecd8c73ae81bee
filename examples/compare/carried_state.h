// The complete state of a training run between two steps, in host memory: another session can
// continue from it with the same bits. training_state.h in models/checkpoint keeps the same
// state in a file.
//
// Threads: the session's issuing thread, between steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "examples/common/training.h"

namespace tidemark::compare {

struct CarriedState {
  int64_t step = 0;  // completed steps
  // The rest is empty on devices without data.
  std::vector<std::vector<std::byte>> values;  // of CarriedParts::tensors without_shared
  std::vector<int64_t> update_counts;
  double learning_rate = 0;
  uint64_t random_offset = 0;
  std::string checksum;
};

// Copies the state out of the current session. Waits for the values.
CarriedState carry_out(Training& training, int64_t step);
// Restores the state into a training of the same job. Throws std::logic_error if the checksum
// afterwards differs from the state's.
void carry_in(Training& training, const CarriedState& state);

}  // namespace tidemark::compare
