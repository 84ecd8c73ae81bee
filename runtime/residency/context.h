// Private to residency/, except the options: state shared by its parts.
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
  // Off: storages are counted and freed, but never released; an operator that does not fit is
  // an error.
  bool managed = true;
  // A dry run has shown that the program fits. Storages that only recipes could read are
  // dropped, so that memory use equals that without management.
  bool known_to_fit = false;
  bool evict = true;
  // Off: costs come only from the device's profile, so that decisions match the simulator's
  // step for step.
  bool learn_costs = true;
  // Off: compute waits for each copy at once.
  bool overlap = true;
  // Compacts blocks instead of releasing storages, where that is cheaper.
  bool compact = true;
  // Measures the host's time in StepStats::memory_time, at a small cost.
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

  const MemoryView* view = nullptr;  // passed to the policy
  StorageEvents events{};
  Effort effort{};
  Nanos clock{0};  // the issue clock: advanced by the cost of each operator
  Phase phase = Phase::kForward;
  StepStats stats{};
  int timing = 0;  // MemoryTimers alive

  // Whether a storage may be evicted or offloaded at all. Evicting also needs a runnable
  // recipe.
  bool may_evict(const Storage& storage) const {
    return options.evict && !storage.evict_pinned;
  }
  bool may_offload(const Storage& storage) const {
    return !storage.offload_pinned && !tiers.empty();
  }

  // Records an event in the log. Returns its tag, for the device to time the work.
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
