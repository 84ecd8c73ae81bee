// Counts and sums over one training step, for progress bars and the JSON summary.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/core/units.h"

namespace tidemark {

struct StepStats {
  int64_t operators = 0;
  int64_t evictions = 0;
  int64_t offloads = 0;     // copied out
  int64_t clean_drops = 0;  // released for free: a tier had a valid copy
  int64_t reloads = 0;      // prefetches included
  int64_t prefetches = 0;
  int64_t recomputes = 0;
  int64_t compactions = 0;
  int64_t last_resorts = 0;  // times the last resort had to make space
  bool planned = false;      // the whole step followed a schedule
  Bytes evicted_bytes{0};
  Bytes offload_bytes{0};
  Bytes reload_bytes{0};
  Nanos recompute_time{0};  // measured where possible, else modelled
  Nanos stall_time{0};      // the compute stream waited for copies
  // Host time, with ResidencyOptions::time_memory: finding and freeing blocks, deciding what to
  // release and when, and issuing these actions.
  Nanos memory_time{0};
  int64_t memory_timings = 0;  // timed intervals, each of which reads the clock twice
  // Host time spent planning such steps, after the step. Not part of `duration`.
  Nanos planning_time{0};
  Nanos duration{0};  // on the device's clock
  Nanos modelled{0};  // as `duration`, but with modelled costs throughout
  Bytes peak_reserved{0};
  Bytes peak_live{0};
};

// Adds a step's counts, sizes and times; of peaks, the larger one counts, and `planned` stays.
inline StepStats& operator+=(StepStats& total, const StepStats& step) {
  total.operators += step.operators;
  total.evictions += step.evictions;
  total.offloads += step.offloads;
  total.clean_drops += step.clean_drops;
  total.reloads += step.reloads;
  total.prefetches += step.prefetches;
  total.recomputes += step.recomputes;
  total.compactions += step.compactions;
  total.last_resorts += step.last_resorts;
  total.evicted_bytes += step.evicted_bytes;
  total.offload_bytes += step.offload_bytes;
  total.reload_bytes += step.reload_bytes;
  total.recompute_time += step.recompute_time;
  total.stall_time += step.stall_time;
  total.memory_time += step.memory_time;
  total.memory_timings += step.memory_timings;
  total.planning_time += step.planning_time;
  total.duration += step.duration;
  total.modelled += step.modelled;
  total.peak_reserved = std::max(total.peak_reserved, step.peak_reserved);
  total.peak_live = std::max(total.peak_live, step.peak_live);
  return total;
}

}  // namespace tidemark
