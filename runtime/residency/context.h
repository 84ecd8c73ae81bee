// Private to residency/: state shared by its parts.
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
#include "runtime/residency/residency_options.h"
#include "runtime/residency/storage_event.h"
#include "runtime/residency/storages.h"
#include "runtime/telemetry/event_log.h"
#include "runtime/telemetry/step_stats.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

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
