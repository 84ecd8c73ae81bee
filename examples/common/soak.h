// Runs many steps of random shapes in one session, and checks that memory does not grow.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "examples/common/shaped_training.h"
#include "runtime/core/units.h"
#include "runtime/session/session.h"

namespace tidemark {

struct SoakOptions {
  int64_t batch = 1;                // each step has 1 to this many
  std::vector<int64_t> sizes{};     // each step has one of these
  std::optional<double> minutes{};  // stops at either limit; default: none
  std::optional<int64_t> steps{};
  uint64_t seed = 0;
};

// Measurements after a step, or means over several steps.
struct SoakSample {
  // Share of the arena's unused bytes, between steps, that lie outside its largest hole.
  double scattered = 0;
  // The arena's highest end offset within the step, divided by the maximum of live bytes. 1 is
  // the minimum; when a budget is exhausted, this says little.
  double spread = 1;
  double moves = 0;      // blocks moved to join holes
  double host_used = 0;  // bytes, on the host tier
  double kept = 0;       // storages kept by the runtime between steps
  double process = 0;    // resident bytes; 0 if the system does not report them
  double own = 0;        // process less the arena, host tier and steps' data
};

struct SoakReport {
  int64_t steps = 0;
  int64_t out_of_memory = 0;  // steps abandoned
  bool interrupted = false;
  double seconds = 0;
  Bytes peak{0};  // of the arena
  Bytes host_peak{0};
  // Means over the first, the middle and the last tenth of the steps.
  SoakSample first, middle, last;

  static constexpr int64_t kEnough = 200;  // so that a tenth is meaningful
  // If false, moves and the process's own memory mean nothing yet.
  bool long_enough() const { return steps >= kEnough; }
  bool flat() const;
};

// Runs until the options' limit, or until `stop` returns true.
SoakReport soak(Session& session, ShapedTraining& training, const SoakOptions& options,
                const std::function<bool()>& stop);

}  // namespace tidemark
