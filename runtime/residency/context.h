// Private to residency/, but for the options: what its parts share.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cost/cost_model.h"
#include "runtime/device/device.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/tier.h"
#include "runtime/residency/effort.h"
#include "runtime/residency/memory_view.h"
#include "runtime/residency/policy.h"
#include "runtime/residency/storage_event.h"
#include "runtime/residency/storages.h"
#include "runtime/telemetry/event_log.h"
#include "runtime/telemetry/step_stats.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

struct ResidencyOptions {
  // Off: storages are counted and freed, never released; an operator that does not fit is an
  // error.
  bool managed = true;
  // The program is known to fit (a dry run said so): inputs that only recipes could still want
  // are dropped, so that memory is used exactly as without management.
  bool known_to_fit = false;
  bool evict = true;
  // Off: operators and copies are priced by the profile alone, so that decisions are those of
  // the simulator, step for step.
  bool learn_costs = true;
  // Off: each copy is waited for by compute before anything else runs.
  bool overlap = true;
  // Compaction blocks together instead of releasing, where that is cheaper.
  bool compact = true;
  // Count the host's time in StepStats::memory_time; takes some itself.
  bool time_memory = false;
  // Overwrite freed blocks with a pattern (debugging; devices with data).
  bool poison = false;
};

struct ResidencyContext {
  Device& device;
  Arena& arena;
  const std::vector<Tier*> tiers;  // nearest first
  CostModel& costs;
  EventLog& log;
  ReleasePolicy& policy;
  const ResidencyOptions options;
  Storages storages;

  const MemoryView* view = nullptr;  // what the policy is shown
  StorageEvents events{};
  Effort effort{};
  Nanos clock{0};  // of issue: advanced by the cost of each operator
  Phase phase = Phase::kForward;
  StepStats stats{};
  int timing = 0;  // MemoryTimers alive

  // Where its bytes may go, if it can be had back.
  bool may_evict(const Storage& storage) const {
    return options.evict && !storage.evict_pinned;
  }
  bool may_offload(const Storage& storage) const {
    return !storage.offload_pinned && !tiers.empty();
  }

  // To the event log. The tag of work that the device is to time.
  uint64_t record(EventKind kind, Reason reason, const Storage& storage, StreamId stream,
                  Nanos expected) {
    EventRecord event;
    event.kind = kind;
    event.reason = reason;
    event.stream = static_cast<uint8_t>(stream);
    event.category = static_cast<uint8_t>(storage.category);
    event.storage = storage.id();
    event.name = storage.name;
    event.op = storage.origin();
    event.bytes = storage.size();
    event.issued = clock;
    event.expected = expected;
    event.used = arena.used();
    return log.record(event);
  }
};

}  // namespace tidemark
