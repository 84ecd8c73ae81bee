#include "runtime/replay/planned_memory.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/moving_layout.h"
#include "runtime/planner/validator.h"
#include "runtime/replay/released_at_once.h"

namespace tidemark {
namespace {

using planner::Buffer;
using Kind = MemoryTrace::Kind;

// When each event is issued, if operators take what they are thought to.
std::vector<Nanos> times(const StepTrace& graph, const MemoryTrace& trace) {
  std::vector<Nanos> times;
  Nanos now{0};
  size_t op = 0;
  for (const MemoryTrace::Event& event : trace.events) {
    times.push_back(now);
    if (event.kind != Kind::kEndOfCall) continue;
    while (op < graph.ops.size() && graph.ops[op].kind != StepTrace::Kind::kCall) ++op;
    if (op < graph.ops.size()) now += graph.ops[op++].cost;
  }
  return times;
}

// Of a block, from the event that issues it to the one by which it is expected to be done.
struct CopyOfBlock {
  size_t block;
  int64_t begin;
  int64_t done = 0;
};

// Goes through copies of one direction, one after the other.
void expect(std::vector<CopyOfBlock>& copies, const std::vector<Nanos>& at,
            const MemoryTrace& trace, const LinkRate& link) {
  std::stable_sort(
      copies.begin(), copies.end(),
      [](const CopyOfBlock& a, const CopyOfBlock& b) { return a.begin < b.begin; });
  Nanos link_free{0};
  for (CopyOfBlock& copy : copies) {
    link_free = std::max(link_free, at[static_cast<size_t>(copy.begin)]) +
                link.time(trace.blocks[copy.block].size);
    copy.done = std::upper_bound(at.begin(), at.end(), link_free) - at.begin();
  }
}

struct Copies {
  std::vector<CopyOfBlock> out, in;  // in: those ahead of need
};

Copies copies_of(const StepTrace& graph, const MemoryTrace& trace, const LinkRates& links) {
  Copies copies;
  for (size_t b = 0; b < trace.blocks.size(); ++b) {
    const MemoryTrace::Block& block = trace.blocks[b];
    if (block.copied >= 0) copies.out.push_back({b, block.copied});
    if (block.begin < 0) continue;
    const bool ahead = trace.events[static_cast<size_t>(block.begin)].kind == Kind::kPrefetch;
    if (ahead) copies.in.push_back({b, block.begin});
  }
  const std::vector<Nanos> at = times(graph, trace);
  expect(copies.out, at, trace, links.out);
  expect(copies.in, at, trace, links.in);
  return copies;
}

// What was released stays until its copy is done.
std::vector<Buffer> with_copies(std::vector<Buffer> buffers, const MemoryTrace& trace,
                                const Copies& copies) {
  for (const CopyOfBlock& copy : copies.out) {
    int64_t& end = buffers[copy.block].end;
    if (trace.blocks[copy.block].release >= 0) end = std::max(end, copy.done);
  }
  return buffers;
}

// What cannot move, as nobody can name it or its call has not run, and what had better not.
std::vector<planner::MovingProblem::Stay> stays_of(const MemoryTrace& trace,
                                                   const Copies& copies) {
  std::vector<planner::MovingProblem::Stay> stays;
  const auto last = static_cast<int64_t>(trace.events.size());
  int64_t end_of_call = last;
  std::vector<int64_t> call_ends(trace.events.size());
  for (int64_t e = last; e-- > 0;) {
    if (trace.events[static_cast<size_t>(e)].kind == Kind::kEndOfCall) end_of_call = e;
    call_ends[static_cast<size_t>(e)] = end_of_call;
  }
  for (size_t b = 0; b < trace.blocks.size(); ++b) {
    const MemoryTrace::Block& block = trace.blocks[b];
    if (block.item == MemoryTrace::kScratch) {
      stays.push_back({b, block.begin, block.end});
    } else if (block.begin >= 0) {
      stays.push_back({b, block.begin, call_ends[static_cast<size_t>(block.begin)]});
    }
  }
  for (const auto* direction : {&copies.out, &copies.in}) {
    for (const CopyOfBlock& copy : *direction) {
      stays.push_back({copy.block, copy.begin + 1, copy.done});
    }
  }
  return stays;
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

// Blocks that move as several, one after the other.
struct Stretches {
  std::vector<Buffer> buffers;
  planner::Offsets offsets;
};

Stretches stretches_of(Stretches blocks, const std::vector<MemoryMove>& moves) {
  std::vector<size_t> latest(blocks.buffers.size());  // stretch of each block
  std::iota(latest.begin(), latest.end(), size_t{0});
  for (const MemoryMove& move : moves) {
    const Buffer whole = blocks.buffers[latest[move.block]];
    const auto now = static_cast<int64_t>(move.event);
    blocks.buffers[latest[move.block]].end = now;
    latest[move.block] = blocks.buffers.size();
    blocks.buffers.push_back({now, whole.end, whole.size});
    blocks.offsets.push_back(move.to);
  }
  return blocks;
}

// Where no block needs to move, none does; else none waits for a copy, if that can be.
bool lay_out(PlannedMemory& plan, const std::vector<Buffer>& buffers, const Copies& copies,
             Bytes capacity, const planner::Limits& limits) {
  const auto homes = places_between_steps(plan.trace);
  const std::vector<Buffer> reluctant = with_copies(buffers, plan.trace, copies);
  if (auto offsets = planner::fit_within(buffers, reluctant, homes, capacity, limits)) {
    plan.offsets = std::move(*offsets);
    return true;
  }
  planner::MovingProblem problem{reluctant, stays_of(plan.trace, copies), homes, capacity};
  auto layout = planner::lay_out_moving(problem, limits);
  if (!layout) {
    problem.buffers = buffers;
    layout = planner::lay_out_moving(problem, limits);
  }
  if (!layout) return false;
  plan.offsets = layout->offsets;
  for (const planner::Move& move : layout->moves) {
    plan.moves.push_back({static_cast<size_t>(move.time), move.buffer, move.to});
  }
  plan.moved = layout->moved;
  return true;
}

}  // namespace

PlannedMemory plan_memory(const StepTrace& graph, MemoryTrace trace, Bytes capacity,
                          const LinkRates& links, const planner::Limits& limits) {
  const auto calls = std::count_if(graph.ops.begin(), graph.ops.end(), [](const auto& op) {
    return op.kind == StepTrace::Kind::kCall;
  });
  const auto ends = std::count_if(trace.events.begin(), trace.events.end(),
                                  [](const auto& e) { return e.kind == Kind::kEndOfCall; });
  if (calls != ends) throw UsageError("the step's memory was not recorded whole");
  PlannedMemory plan;
  plan.trace = released_at_once(graph, std::move(trace));
  std::vector<Buffer> buffers;
  for (const MemoryTrace::Block& block : plan.trace.blocks) {
    buffers.push_back({block.begin, block.end, block.size});
  }
  plan.load = planner::max_load(buffers);
  if (!lay_out(plan, buffers, copies_of(graph, plan.trace, links), capacity, limits)) {
    throw UsageError("its blocks, " + format_bytes(plan.load) +
                     " at once, were not fitted into the budget of " + format_bytes(capacity));
  }
  const Stretches stretches = stretches_of({buffers, plan.offsets}, plan.moves);
  plan.peak = planner::height(stretches.buffers, stretches.offsets);
  const auto wrong =
      planner::layout_violations(stretches.buffers, stretches.offsets, plan.peak, 1);
  TIDEMARK_CHECK(wrong.empty(), "a layout failed validation: " + wrong.front());
  return plan;
}

}  // namespace tidemark
