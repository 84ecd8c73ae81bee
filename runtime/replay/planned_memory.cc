#include "runtime/replay/planned_memory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/validator.h"
#include "runtime/replay/released_at_once.h"

namespace tidemark {
namespace {

using planner::Buffer;
using Kind = MemoryTrace::Kind;

// When each event is issued, if operators take what they are thought to.
std::vector<Nanos> times(const StepGraph& graph, const MemoryTrace& trace) {
  std::vector<Nanos> times;
  Nanos now{0};
  size_t op = 0;
  for (const MemoryTrace::Event& event : trace.events) {
    times.push_back(now);
    if (event.kind != Kind::kEndOfCall) continue;
    while (op < graph.ops.size() && graph.ops[op].kind != StepGraph::Kind::kCall) ++op;
    if (op < graph.ops.size()) now += graph.ops[op++].cost;
  }
  return times;
}

// Ends with copies under way counted, one copy after the other.
std::vector<Buffer> with_copies(std::vector<Buffer> buffers, const StepGraph& graph,
                                const MemoryTrace& trace, const LinkRate& link) {
  const std::vector<Nanos> at = times(graph, trace);
  std::vector<size_t> copied;
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (trace.blocks[b].copied >= 0 && trace.blocks[b].release >= 0) copied.push_back(b);
  }
  std::stable_sort(copied.begin(), copied.end(), [&](size_t a, size_t b) {
    return trace.blocks[a].copied < trace.blocks[b].copied;
  });
  Nanos link_free{0};
  for (const size_t b : copied) {
    const auto out = static_cast<size_t>(trace.blocks[b].copied);
    const double seconds = static_cast<double>(buffers[b].size.count()) / link.bytes_per_second;
    link_free = std::max(link_free, at[out]) + link.latency +
                Nanos(static_cast<int64_t>(seconds * 1e9));
    const auto done = std::upper_bound(at.begin(), at.end(), link_free) - at.begin();
    buffers[b].end = std::max(buffers[b].end, static_cast<int64_t>(done));
  }
  return buffers;
}

// What is there before the step lies together at the lower end, what stays for all of it first,
// so that what goes leaves one hole; else in its present order.
std::vector<std::optional<Offset>> places_between_steps(const MemoryTrace& trace) {
  const auto& blocks = trace.blocks;
  const auto last = static_cast<int64_t>(trace.events.size());
  std::vector<size_t> first;
  for (size_t b = 0; b < blocks.size() && blocks[b].begin < 0; ++b) first.push_back(b);
  const auto rank = [&](size_t b) { return std::pair(blocks[b].end < last, trace.before[b]); };
  std::sort(first.begin(), first.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  std::vector<std::optional<Offset>> of_item(trace.was_there.size());
  std::vector<std::optional<Offset>> fixed(blocks.size());
  Offset to(0);
  for (const size_t b : first) {
    of_item[blocks[b].item] = fixed[b] = to;
    to = to + blocks[b].size;
  }
  for (size_t b = first.size(); b < blocks.size(); ++b) {
    const bool stays = blocks[b].end == last && blocks[b].item < of_item.size();
    if (stays && trace.was_there[blocks[b].item]) fixed[b] = of_item[blocks[b].item];
  }
  return fixed;
}

}  // namespace

PlannedMemory plan_memory(const StepGraph& graph, MemoryTrace trace, Bytes capacity,
                          const LinkRate& link, const planner::Limits& limits) {
  const auto calls = std::count_if(graph.ops.begin(), graph.ops.end(), [](const auto& op) {
    return op.kind == StepGraph::Kind::kCall;
  });
  const auto ends = std::count_if(trace.events.begin(), trace.events.end(),
                                  [](const auto& e) { return e.kind == Kind::kEndOfCall; });
  if (calls != ends) throw UsageError("the step's memory was not recorded whole");
  trace = released_at_once(graph, std::move(trace));
  std::vector<Buffer> buffers;
  for (const MemoryTrace::Block& block : trace.blocks) {
    buffers.push_back({block.begin, block.end, block.size});
  }
  const auto fixed = places_between_steps(trace);
  const auto offsets = planner::fit_within(buffers, with_copies(buffers, graph, trace, link),
                                           fixed, capacity, limits);
  const Bytes load = planner::max_load(buffers);
  if (!offsets) {
    throw UsageError("its blocks, " + format_bytes(load) +
                     " at once, were not fitted into the budget of " + format_bytes(capacity));
  }
  const Bytes peak = planner::height(buffers, *offsets);
  const auto wrong = planner::layout_violations(buffers, *offsets, peak, 1);
  TIDEMARK_CHECK(wrong.empty(), "a layout failed validation: " + wrong.front());
  return {std::move(trace), *offsets, peak, load};
}

}  // namespace tidemark
