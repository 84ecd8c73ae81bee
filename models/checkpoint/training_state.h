// A whole training run in one file, to go on from with the same bits: parameters, buffers,
// optimizer state and counts, the random stream, the step, and the place in the data.
//
// A safetensors file: tensors "parameter.NAME", "buffer.NAME", "optimizer.NAME"; the rest is in
// __metadata__, with a checksum over the file. It is replaced atomically (atomic_file.h).
//
// Threads: the session's issuing thread, between steps.
#pragma once

#include <cstdint>
#include <string>

#include "models/checkpoint/safetensors.h"
#include "models/nn/module.h"
#include "models/optim/optimizer.h"

namespace tidemark {

// The batch that comes next; its order is drawn from (order_seed, epoch).
struct DataPosition {
  int64_t epoch = 0;
  int64_t index = 0;
  uint64_t order_seed = 0;
  bool operator==(const DataPosition&) const = default;
};

struct TrainingState {
  int64_t step = 0;  // steps done
  DataPosition data;
  // The program's own, such as the network's name: for it to compare, here they are text.
  SafetensorsMetadata settings;
  bool operator==(const TrainingState&) const = default;
};

// Waits for the values. Throws UsageError on devices without data; DataError if the file cannot
// be written, and then an older one is still there.
void save_training_state(const std::string& path, const Module& model,
                         const Optimizer& optimizer, const TrainingState& state);

// Brings model, optimizer (its learning rate too) and the session's random stream to where they
// were. Throws DataError if the file is damaged or of another model or optimizer, UsageError if
// the session has another seed; nothing has been changed then.
TrainingState load_training_state(const std::string& path, Module& model, Optimizer& optimizer);

// The state alone: to know what model to make. Checks the checksum too.
TrainingState read_training_state(const std::string& path);

// The settings alone, from the file's header; the checksum is not checked. Throws DataError.
SafetensorsMetadata read_training_settings(const std::string& path);

}  // namespace tidemark
