#include "runtime/policy/tide/memory_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "runtime/planner/layout/moving_layout.h"
#include "runtime/policy/tide/plan_search.h"

namespace tidemark {
namespace {

// So much may lack in all of a step where blocks slide: it is released by price.
constexpr double kNearly = 0.1;

// Passes of a layout: with all the effort there is; at least, with kQuick or more.
constexpr int64_t kPasses = 500;
constexpr int64_t kFewPasses = 50;
constexpr int64_t kCallsPerNode = 15;  // calls of a rehearsal take as long at most
constexpr double kLayoutSeconds = 20;  // which ends it on a machine that is too slow for that

// Of the room, what is left free so that blocks find places without much moving: one after the
// other, until moves take less than such a share of the step.
constexpr double kSlacks[] = {0.01, 0.04, 0.08};
constexpr double kCheap = 0.004;

// The blocks as they lie in time, then strangers. Event e is at time e + 1: what moves then
// does so before it.
void add_buffers(planner::MovingProblem& problem, const MemoryEvents& memory,
                 const std::vector<Bytes>& strangers) {
  const auto end = static_cast<int64_t>(memory.events.size()) + 1;
  for (size_t b = 0; b < memory.blocks.size(); ++b) {
    const MemoryEvents::Block& block = memory.blocks[b];
    const int64_t begin = b < memory.there ? 0 : static_cast<int64_t>(block.begin) + 1;
    const int64_t until = static_cast<int64_t>(block.end) + 1;
    problem.buffers.push_back({begin, until, block.size});
    if (block.item == MemoryEvents::kScratch) problem.stays.push_back({b, begin, until});
  }
  for (const Bytes size : strangers) {
    problem.stays.push_back({problem.buffers.size(), 0, end});
    problem.buffers.push_back({0, end, size});
  }
  for (const MemoryEvents::Stay& stay : memory.stays) {
    problem.stays.push_back(
        {stay.block, static_cast<int64_t>(stay.begin) + 2, static_cast<int64_t>(stay.end) + 1});
  }
}

// A home for each item that lives on, at the lower end in their order, so that step can follow
// step without moving anything, and steps of other programs too.
std::vector<std::optional<Offset>> homes_of(const StepTable& step, const MemoryEvents& memory,
                                            const std::vector<planner::Buffer>& buffers) {
  std::vector<std::optional<Offset>> of_item(step.items.size());
  Offset to(0);
  for (size_t b = 0; b < memory.there; ++b) {
    of_item[memory.blocks[b].item] = to;
    to = to + memory.blocks[b].size;
  }
  std::vector<std::optional<Offset>> homes(buffers.size());
  for (size_t b = 0; b < memory.blocks.size(); ++b) {
    const uint32_t item = memory.blocks[b].item;
    if (item != MemoryEvents::kScratch) homes[b] = of_item[item];
  }
  for (size_t b = memory.blocks.size(); b < buffers.size(); ++b) {
    homes[b] = to;
    to = to + buffers[b].size;
  }
  return homes;
}

// False, and the plan is as it was, if no layout within `capacity` was found.
bool lay_out(MemoryPlan& plan, const StepTable& step, const std::vector<Bytes>& strangers,
             Bytes capacity, int64_t effort, int64_t& taken) {
  planner::MovingProblem problem;
  problem.capacity = capacity;
  add_buffers(problem, plan.memory, strangers);
  problem.homes = homes_of(step, plan.memory, problem.buffers);
  planner::Limits limits;
  limits.seconds = kLayoutSeconds;
  const int64_t few = std::clamp<int64_t>(kFewPasses * effort / kQuick, 1, kFewPasses);
  limits.nodes = std::max(few, kPasses * effort / kThorough) *
                 static_cast<int64_t>(problem.buffers.size());
  taken += limits.nodes * kCallsPerNode;
  const auto layout = planner::lay_out_moving(problem, limits);
  if (!layout) return false;
  const auto first_stranger =
      layout->offsets.begin() + static_cast<ptrdiff_t>(plan.memory.blocks.size());
  plan.offsets.assign(layout->offsets.begin(), first_stranger);
  for (size_t s = 0; s < strangers.size(); ++s) {
    plan.strangers.push_back({first_stranger[static_cast<ptrdiff_t>(s)], strangers[s]});
  }
  for (const planner::Move& move : layout->moves) {
    plan.moves.push_back({static_cast<size_t>(move.time - 1), move.buffer, move.to});
  }
  plan.moved = layout->moved;
  return true;
}

// Searched and rehearsed within `room`; where it lies is not decided.
MemoryPlan plan_within(Bytes room, const StepTable& step, PlanLimits limits,
                       std::vector<PlannedRelease> draft, int64_t effort, int64_t& taken) {
  limits.room = room;
  const bool first = draft.empty();
  if (first) draft = make_release_plan(step, limits).releases;
  MemoryPlan plan;
  SearchResult found = search_releases(step, limits, draft, first ? effort : effort / 2);
  taken += found.calls;
  plan.releases = std::move(found.releases);
  plan.expected = StepRehearsal(step, limits).run(plan.releases, &plan.memory);
  return plan;
}

}  // namespace

std::optional<MemoryPlan> make_memory_plan(const StepTable& step, const PlanLimits& limits,
                                           const std::vector<Bytes>& strangers,
                                           std::vector<PlannedRelease> draft, int64_t effort,
                                           int64_t* taken) {
  int64_t ignored = 0;
  int64_t& calls = taken ? *taken : ignored;
  Bytes room = limits.room;
  for (const Bytes size : strangers) room -= size;
  if (room <= Bytes(0)) return std::nullopt;
  const auto time = [&](const MemoryPlan& plan) {
    return plan.expected.time + limits.move_time(plan.moved);
  };
  std::optional<MemoryPlan> best;
  for (const double slack : kSlacks) {
    MemoryPlan plan = plan_within(room - share_of(room, slack), step, limits, std::move(draft),
                                  effort, calls);
    draft = plan.releases;
    if (!plan.expected.possible || plan.expected.lacking > Bytes(0)) break;
    if (best && plan.expected.time >= time(*best)) break;
    if (!lay_out(plan, step, strangers, limits.room, effort, calls)) continue;
    const bool cheap = static_cast<double>(limits.move_time(plan.moved).count()) <=
                       kCheap * static_cast<double>(step.duration.count());
    if (!best || time(plan) < time(*best)) best = std::move(plan);
    if (cheap) break;
  }
  if (best) return best;
  MemoryPlan plan = plan_within(room, step, limits, std::move(draft), effort, calls);
  const bool nearly = plan.expected.lacking <= share_of(room, kNearly);
  if (!plan.expected.possible || !nearly) return std::nullopt;
  const bool fits = plan.expected.lacking == Bytes(0);
  if (fits && lay_out(plan, step, strangers, limits.room, effort, calls)) return plan;
  for (const Bytes size : strangers) plan.strangers.push_back({Offset(0), size});
  return plan;
}

}  // namespace tidemark
