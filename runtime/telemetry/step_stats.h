// Counts and sums over one training step; what a progress bar and the JSON summary show.
#pragma once

#include <cstdint>

#include "runtime/core/units.h"

namespace tidemark {

struct StepStats {
  int64_t operators = 0;
  int64_t evictions = 0;
  int64_t offloads = 0;     // copied out
  int64_t clean_drops = 0;  // released for nothing: a valid copy was on a tier
  int64_t reloads = 0;      // prefetches included
  int64_t prefetches = 0;
  int64_t recomputes = 0;
  int64_t compactions = 0;
  int64_t austere_rooms = 0;  // times that the last resort had to make room
  bool planned = false;       // all of it ran by a plan
  Bytes evicted_bytes{0};
  Bytes offload_bytes{0};
  Bytes reload_bytes{0};
  Nanos recompute_time{0};  // measured where the device has measured it, else as modelled
  Nanos stall_time{0};      // the compute stream stood still for a copy
  // The host's, with ResidencyOptions::time_memory: finding and freeing blocks, deciding what
  // to release and when, and issuing that.
  Nanos memory_time{0};
  int64_t memory_timings = 0;  // stretches of it, each of which reads the clock twice
  // The host's, once the step was over: on a plan for steps like it. Not part of `duration`.
  Nanos planning_time{0};
  Nanos duration{0};  // on the device's clock
  Nanos modelled{0};  // the same where it is not measured, but priced throughout
  Bytes peak_reserved{0};
  Bytes peak_live{0};
};

}  // namespace tidemark
