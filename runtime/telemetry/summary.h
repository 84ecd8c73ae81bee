// Summaries of a run's events and of its steps. Pure functions: events in, tables out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/telemetry/event_log.h"

namespace tidemark {

struct KindTotal {
  EventKind kind = EventKind::kOperator;
  int64_t count = 0;
  Bytes bytes{0};
  Nanos time{0};  // measured if the event has completed, else modelled
};

// One row per kind that occurs, in the order of EventKind.
std::vector<KindTotal> totals_by_kind(std::span<const EventRecord> events);

struct OperatorTotal {
  std::string name;  // of the operator
  int64_t count = 0;
  Bytes bytes{0};
  Nanos time{0};
};

// The `n` operators whose events of `kind` took the longest, longest first; ties by name.
std::vector<OperatorTotal> top_operators(std::span<const EventRecord> events, EventKind kind,
                                         size_t n);
// The most expensive recomputations.
inline std::vector<OperatorTotal> top_recomputed(std::span<const EventRecord> events,
                                                 size_t n) {
  return top_operators(events, EventKind::kRecompute, n);
}

// As text, one line per row:
//   recompute        12        1.2 GiB     34.5 ms
std::string format_totals(std::span<const KindTotal> totals);

}  // namespace tidemark
