// Training runs on the simulator as the DELTA paper (Tang et al., 2022) has them, one at a
// time: which network, which policy, which budget; what a step takes once the policy has
// settled.
//
// Threads: any; each call makes sessions of its own on the calling thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/paper_network.h"
#include "runtime/session/dry_run.h"
#include "runtime/telemetry/event_log.h"

namespace tidemark {

inline constexpr const char* kPaperDevice = "sim:a100-80gb";

// How a step ran without a budget, and the smallest one.
struct PaperNeed {
  UnmanagedNeed unmanaged;
  double ms = 0;     // of a step without a budget
  Bytes minimum{0};  // smallest feasible budget with ample host memory
};
// `with_minimum` false: that is left out.
PaperNeed measure_need(const PaperModel& model, bool with_minimum = true);
// Smallest feasible budget where nothing can be offloaded.
Bytes minimum_without_tiers(const PaperModel& model, const PaperNeed& need);

// A policy and, for DELTA, its filter: "tide", "delta", "delta:lru".
struct PaperPolicy {
  std::string name;
  std::string filter{};
};
PaperPolicy parse_policy(const std::string& text);

struct PaperRun {
  PaperPolicy policy;
  Bytes budget{0};
  Bytes host_limit{0};
  bool overlap = true;
  int64_t steps = 20;
  // A step that has taken this many times a step without a budget is given up, and with it the
  // run: the policy is thrashing.
  double give_up = 20;
  // Of the last step: what timelines are drawn from.
  bool keep_events = false;
};

struct PaperResult {
  std::string failure{};  // empty: it ran
  bool gave_up = false;   // at least `give_up` times as slow
  double ms = 0;          // median of the last three steps
  int64_t steps = 0;      // that were run: settled policies stop early
  StepStats last{};
  Bytes peak{0};  // highest end offset in the arena, in all steps
  Bytes peak_live{0};
  Bytes host_peak{0};
  std::vector<EventRecord> events{};
  bool ran() const { return failure.empty() && !gave_up; }
};
// Never throws OutOfMemory: that is a failure.
PaperResult run_paper(const PaperModel& model, const PaperNeed& need, const PaperRun& run);

}  // namespace tidemark
