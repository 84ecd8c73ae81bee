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
  std::string device;
  int64_t batch = 0;
  int64_t image = 224;
  int64_t channels = 3;
  int64_t classes = 1000;
  // None: unmanaged. Else where the budget lies: 0 the smallest feasible one, 1 the unmanaged
  // peak.
  std::optional<double> room{};
  std::string filter = "base";

  std::string name() const;  // "resnet50-224-b8-host-unmanaged", "...-room10-lru"
};

// Each network on each device: unmanaged, and within budgets by each filter.
std::vector<TrainingRun> training_runs();

// Construction, two steps of training, one with the smaller last batch of an epoch, one of
// evaluation, and one of training.
Program program_of(const TrainingRun& run);

struct TrainingResult {
  Bytes unmanaged_peak{0};
  Bytes budget{0};  // endless if unmanaged
  std::vector<StepStats> steps;
  // By sliding blocks, in all steps.
  Bytes moved{0};
  Nanos moving{0};
};
// `make_arena` makes the session's arena, of the capacity that it is given. Throws OutOfMemory.
using MakeArena = std::function<std::unique_ptr<Arena>(Device&, Bytes)>;
TrainingResult train(const TrainingRun& run, const MakeArena& make_arena);

}  // namespace tidemark
