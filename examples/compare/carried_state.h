// All that a training run is, between two steps, in host memory: to go on with it in another
// session, with the same bits. What models/checkpoint/training_state.h keeps in a file.
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
  int64_t step = 0;  // steps done
  // Of devices without data the rest is empty.
  std::vector<std::vector<std::byte>> values;  // of CarriedParts::tensors without_shared
  std::vector<int64_t> update_counts;
  double learning_rate = 0;
  uint64_t random_offset = 0;
  std::string checksum;
};

// Waits for the values. In the current session.
CarriedState carry_out(Training& training, int64_t step);
// Into a training of the same job. Throws std::logic_error if the checksum afterwards is not
// that of the state.
void carry_in(Training& training, const CarriedState& state);

}  // namespace tidemark::compare
