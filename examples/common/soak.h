// Many steps of random shapes in one session, and whether memory stays as it is meanwhile.
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
  int64_t batch = 1;                // steps are of 1 to this many
  std::vector<int64_t> sizes{};     // one of these each
  std::optional<double> minutes{};  // ends when either is over; by default there is no end
  std::optional<int64_t> steps{};
  uint64_t seed = 0;
};

// After a step, or the mean of several.
struct SoakSample {
  // Of what is unused in the arena between steps, the share outside of its largest hole.
  double scattered = 0;
  // The arena's highest end offset within the step, over the most that was live at once. 1 is
  // the least; with a budget that is reached it says little.
  double spread = 1;
  double moves = 0;      // blocks that were moved to make one hole of several
  double host_used = 0;  // bytes, on the host tier
  double kept = 0;       // storages that the runtime keeps between steps
  double process = 0;    // resident bytes; 0 where the system does not say
  double own = 0;        // of them beside the arena, the host tier and the steps' data
};

struct SoakReport {
  int64_t steps = 0;
  int64_t out_of_memory = 0;  // steps that were given up
  bool interrupted = false;
  double seconds = 0;
  Bytes peak{0};  // of the arena
  Bytes host_peak{0};
  // Means over the first tenth of the steps, the one in the middle, and the last.
  SoakSample first, middle, last;

  static constexpr int64_t kEnough = 200;  // steps, for a tenth of them to say something
  // If not, moves and the process's own memory say nothing yet.
  bool long_enough() const { return steps >= kEnough; }
  bool flat() const;
};

// Goes on until the options say so, or `stop` does.
SoakReport soak(Session& session, ShapedTraining& training, const SoakOptions& options,
                const std::function<bool()>& stop);

}  // namespace tidemark
