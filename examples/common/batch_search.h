// Finds the largest batch that trains within a budget: dry runs bracket it, real steps prove
// it.
//
//   batch   1   2   4   8  16  32            dry runs, doubling until one needs too much
//                              24  20  18    ... and halving what is left
//                                  17! 17    real steps; a batch that fails is not tried again
//
// Threads: the calling thread; leaves its current session unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/telemetry/step_stats.h"

namespace tidemark {

// The memory that a batch needs, according to a dry run.
struct BatchNeed {
  Bytes unmanaged{0};  // budget at which nothing is released
  Bytes minimum{0};    // smallest feasible budget
  double speed = 1;    // items per second, relative to the unmanaged run
};

// The result of real steps with a batch.
struct BatchProof {
  bool done = false;
  std::string failure{};  // the reason for a failure
  int64_t steps = 0;      // completed
  Nanos step_time{0};     // median of the second half of the steps
  Bytes peak{0};          // of the arena
};

struct BatchTrial {
  enum class Kind { kDryRun, kUnmanaged, kProof };
  Kind kind = Kind::kDryRun;
  int64_t batch = 0;
  bool fits = false;
  BatchNeed need{};    // not for proofs; unmanaged trials have no minimum
  BatchProof proof{};  // only for proofs
};

// The questions that the search asks; a test can substitute the answers.
struct BatchOracle {
  // The largest arena for this batch, less the margin. Must not grow with the batch.
  std::function<Bytes(int64_t batch)> budget;
  std::function<BatchNeed(int64_t batch)> need;
  std::function<Bytes(int64_t batch)> unmanaged_peak;
  // Called only if there is a least speed, for batches that fit. `without`: the largest
  // unmanaged batch.
  std::function<double(int64_t batch, int64_t without)> speed{};
  // Trains with the batch in its own session, which is destroyed afterwards even on failure.
  std::function<BatchProof(int64_t batch)> prove;
  std::function<void(const BatchTrial&)> on_trial;
};

struct BatchSearchOptions {
  int64_t largest = 1 << 20;  // larger batches are not tried
  double least_speed = 0;     // a slower batch does not fit; 0: no limit
  bool managed = true;        // false: a batch fits if nothing has to be released
};

struct BatchAnswer {
  int64_t batch = 0;    // 0: none
  int64_t without = 0;  // the largest that fits without releases; 0: none
  Bytes least{0};       // if no batch fits: smallest feasible budget of batch 1
  BatchNeed need{};     // of the answer
  BatchProof proof{};   // of the answer
  std::vector<BatchTrial> trials{};
};

// Propagates the oracle's exceptions.
BatchAnswer find_largest_batch(const BatchSearchOptions& options, const BatchOracle& oracle);

}  // namespace tidemark
