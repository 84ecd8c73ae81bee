// Simulated training runs of the DELTA paper (Tang et al., 2022), one at a time: a network, a
// policy and a budget give the time of a step after the policy has settled.
//
// Threads: any; each call makes its own sessions on the calling thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/paper_network.h"
#include "runtime/policy/delta_options.h"
#include "runtime/session/dry_run.h"
#include "runtime/telemetry/event_log.h"

namespace tidemark {

inline constexpr const char* kPaperDevice = "sim:a100-80gb";

// A step without a budget, and the smallest feasible budget.
struct PaperNeed {
  UnmanagedNeed unmanaged;
  double ms = 0;     // of a step without a budget
  Bytes minimum{0};  // smallest feasible budget with ample host memory
};
// `with_minimum` = false leaves `minimum` out.
PaperNeed measure_need(const PaperModel& model, bool with_minimum = true);
// The smallest feasible budget if nothing can be offloaded.
Bytes minimum_without_tiers(const PaperModel& model, const PaperNeed& need);

// A policy and, for DELTA, its filter and repairs: "tide", "delta", "delta:lru",
// "delta/no-link,no-async".
struct PaperPolicy {
  std::string name;
  std::string filter{};
  std::string repairs{};
};
PaperPolicy parse_policy(const std::string& text);

struct PaperRun {
  PaperPolicy policy;
  Bytes budget{0};
  Bytes host_limit{0};
  bool overlap = true;
  // The budget is no limit, only where DELTA begins to release: the arena is twice the
  // unmanaged peak, and early start begins at the budget.
  bool soft = false;
  double early_start = DeltaOptions().early_start;
  int prefetch = DeltaOptions().prefetch;
  bool compact = true;
  int64_t steps = 20;
  // If a step takes this many times the time of a step without a budget, the run is aborted:
  // the policy is thrashing.
  double give_up = 20;
  // Keep the events of the last step, for timelines.
  bool keep_events = false;
};

struct PaperResult {
  std::string failure{};  // empty: it ran
  bool gave_up = false;   // at least `give_up` times as slow
  double ms = 0;          // median of the last three steps
  int64_t steps = 0;      // run; fewer if the policy settles early
  StepStats last{};
  Bytes peak{0};  // highest end offset in the arena, in all steps
  Bytes peak_live{0};
  Bytes host_peak{0};
  std::vector<EventRecord> events{};
  bool ran() const { return failure.empty() && !gave_up; }
};
// Never throws OutOfMemory: running out of memory is reported as a failure.
PaperResult run_paper(const PaperModel& model, const PaperNeed& need, const PaperRun& run);

}  // namespace tidemark
