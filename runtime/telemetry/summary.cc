#include "runtime/telemetry/summary.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>

namespace tidemark {
namespace {

Nanos time_of(const EventRecord& event) {
  return event.end > Nanos(0) ? event.end - event.start : event.expected;
}

template <class Total>
void add(Total& total, const EventRecord& event) {
  ++total.count;
  total.bytes += event.bytes;
  total.time += time_of(event);
}

}  // namespace

std::vector<KindTotal> totals_by_kind(std::span<const EventRecord> events) {
  std::map<EventKind, KindTotal> totals;
  for (const EventRecord& event : events) {
    KindTotal& total = totals[event.kind];
    total.kind = event.kind;
    add(total, event);
  }
  std::vector<KindTotal> result;
  result.reserve(totals.size());
  for (const auto& [kind, total] : totals) result.push_back(total);
  return result;
}

std::vector<OperatorTotal> top_operators(std::span<const EventRecord> events, EventKind kind,
                                         size_t n) {
  std::map<std::string_view, OperatorTotal> totals;
  for (const EventRecord& event : events) {
    if (event.kind == kind) add(totals[event.op], event);
  }
  std::vector<OperatorTotal> result;
  for (auto& [name, total] : totals) {
    total.name = name;
    result.push_back(std::move(total));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  if (result.size() > n) result.resize(n);
  return result;
}

std::string format_totals(std::span<const KindTotal> totals) {
  std::string text;
  for (const KindTotal& total : totals) {
    const std::string kind(to_string(total.kind));
    std::array<char, 96> line{};
    std::snprintf(line.data(), line.size(), "%-13s %8lld %14s %11.1f ms\n", kind.c_str(),
                  static_cast<long long>(total.count), format_bytes(total.bytes).c_str(),
                  to_ms(total.time));
    text += line.data();
  }
  return text;
}

}  // namespace tidemark
