// A whole training run in one file, from which it resumes with the same bits: parameters,
// buffers, optimizer state and counts, the random stream, the calls' algorithms, the step, and
// the position in the data. Frozen parameters are not in it: they are as they were loaded.
//
// A safetensors file: tensors "parameter.NAME", "buffer.NAME", "optimizer.NAME"; the rest is in
// __metadata__, with a checksum over the file. It is replaced atomically (atomic_file.h).
//
// Threads: the session's issuing thread, between steps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/checkpoint/safetensors.h"
#include "models/nn/module.h"
#include "models/optim/optimizer.h"
#include "runtime/session/algorithms.h"

namespace tidemark {

// The next batch; its order is drawn from (order_seed, epoch).
struct DataPosition {
  int64_t epoch = 0;
  int64_t index = 0;
  uint64_t order_seed = 0;
  bool operator==(const DataPosition&) const = default;
};

struct TrainingState {
  int64_t step = 0;  // completed steps
  DataPosition data;
  // The algorithms of the session's calls (SessionOptions::algorithms), which the session that
  // goes on has to have; null: none were chosen.
  std::shared_ptr<const AlgorithmTable> algorithms;
  // Settings of the program, such as the network's name. The program compares them; here they
  // are plain text.
  WeightMetadata settings;
};

// Also saves the session's random stream and its algorithms: `state.algorithms` is not read.
// Waits for the values. Throws UsageError on devices without data; DataError if the file cannot
// be written, in which case an older file is left intact.
void save_training_state(const std::string& path, const Module& model,
                         const Optimizer& optimizer, const TrainingState& state);

// Restores model, optimizer (including its learning rate) and the session's random stream.
// Throws DataError if the file is damaged or belongs to another model or optimizer, UsageError
// if the session has another seed or other algorithms; nothing has changed then.
TrainingState load_training_state(const std::string& path, Module& model, Optimizer& optimizer);

// Reads only the state, so that the caller knows which model to make. Verifies the checksum.
TrainingState read_training_state(const std::string& path);

// Reads only the settings, from the file's header, without verifying the checksum. Throws
// DataError.
WeightMetadata read_training_settings(const std::string& path);

}  // namespace tidemark
