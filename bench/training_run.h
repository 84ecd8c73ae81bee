// The training runs whose allocations are recorded and replayed: ResNets on the simulator.
//
// Threads: the session's issuing thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session/dry_run.h"
#include "runtime/session/session.h"

namespace tidemark {

struct TrainingRun {
  std::string model;
  std::string device{};
  int64_t batch = 0;
  int64_t image = 224;
  int64_t channels = 3;
  int64_t classes = 1000;
  // Nullopt: unmanaged. Otherwise the budget, as a fraction of the way from the smallest
  // feasible budget (0) to the unmanaged peak (1).
  std::optional<double> room{};
  std::string filter = "base";

  std::string name() const;  // "resnet50-224-b8-host-unmanaged", "...-room10-lru"
};

// Each network on each device: unmanaged, and under each filter with several budgets.
std::vector<TrainingRun> training_runs();

// Construction, two training steps, one training step with the smaller last batch of an epoch,
// one evaluation step, and one more training step.
Program program_of(const TrainingRun& run);

struct TrainingResult {
  Bytes unmanaged_peak{0};
  Bytes budget{0};  // endless if unmanaged
  std::vector<StepStats> steps;
  // Bytes and time of compaction, over all steps.
  Bytes moved{0};
  Nanos moving{0};
};
// Makes the session's arena with the given capacity. train() throws OutOfMemory.
using MakeArena = std::function<std::unique_ptr<Arena>(Device&, Bytes)>;
TrainingResult train(const TrainingRun& run, const MakeArena& make_arena);

}  // namespace tidemark
