#include "runtime/delta/tide/memory_plan.h"

#include <cstddef>
#include <utility>

#include "runtime/delta/tide/plan_search.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/layout.h"

namespace tidemark {
namespace {

// Of the room, what blocks may lose by not lying close: tried one after the other.
constexpr double kSlacks[] = {0.02, 0.045, 0.08};

// So much may lack in all of a step where blocks slide: it is released by price.
constexpr double kNearly = 0.1;

// Of which so many times may lack before more of it is of no use either.
constexpr int64_t kHopeless = 4;

// Of a search, in calls gone through, and of a layout's, in nodes: about a second, where they
// are used up.
constexpr int64_t kEffort = 48'000'000;
constexpr int64_t kLayoutNodes = 4'000;
constexpr int64_t kRounds = 60;       // of the layout that leaves what lives on at home
constexpr double kLayoutSeconds = 5;  // which ends it on a machine that is too slow for that

// The blocks as they lie in time, then strangers.
std::vector<planner::Buffer> buffers_of(const MemoryEvents& memory,
                                        const std::vector<Bytes>& strangers) {
  std::vector<planner::Buffer> buffers;
  for (size_t b = 0; b < memory.blocks.size(); ++b) {
    const MemoryEvents::Block& block = memory.blocks[b];
    const int64_t begin = b < memory.there ? 0 : static_cast<int64_t>(block.begin) + 1;
    buffers.push_back({begin, static_cast<int64_t>(block.end) + 1, block.size});
  }
  const auto end = static_cast<int64_t>(memory.events.size()) + 1;
  for (const Bytes size : strangers) buffers.push_back({0, end, size});
  return buffers;
}

// A home for each item that lives on, at the lower end in their order, so that step can follow
// step without moving anything, and steps of other programs too.
std::vector<std::optional<Offset>> homes_of(const StepRecord& step, const MemoryEvents& memory,
                                            const std::vector<planner::Buffer>& buffers) {
  std::vector<std::optional<Offset>> of_item(step.items.size());
  Offset to(0);
  for (size_t item = 0; item < step.items.size(); ++item) {
    if (!step.items[item].was_there()) continue;
    of_item[item] = to;
    to = to + step.items[item].bytes;
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

// Places for all, the plan's and the strangers'; none if no layout was found.
std::optional<planner::Offsets> find_layout(const StepRecord& step, const MemoryEvents& memory,
                                            const std::vector<planner::Buffer>& buffers,
                                            Bytes capacity) {
  planner::Limits limits;
  limits.seconds = kLayoutSeconds;
  limits.nodes = kRounds * static_cast<int64_t>(buffers.size());
  const auto homes = homes_of(step, memory, buffers);
  if (auto found = planner::fit_within(buffers, buffers, homes, capacity, limits)) return found;
  // Where each lies otherwise at the step's end than at its beginning, if it has to.
  planner::LayoutOptions options;
  options.limits.seconds = kLayoutSeconds;
  options.limits.nodes = kLayoutNodes;
  options.target = capacity;
  planner::Layout layout = planner::plan_layout(buffers, options);
  if (layout.height > capacity) return std::nullopt;
  return std::move(layout.offsets);
}

// False, and the plan is as it was, if no layout within `capacity` was found.
bool lay_out(MemoryPlan& plan, const StepRecord& step, const std::vector<Bytes>& strangers,
             Bytes capacity) {
  const auto offsets =
      find_layout(step, plan.memory, buffers_of(plan.memory, strangers), capacity);
  if (!offsets) return false;
  const auto first_stranger =
      offsets->begin() + static_cast<ptrdiff_t>(plan.memory.blocks.size());
  plan.offsets.assign(offsets->begin(), first_stranger);
  for (size_t s = 0; s < strangers.size(); ++s) {
    plan.strangers.push_back({first_stranger[static_cast<ptrdiff_t>(s)], strangers[s]});
  }
  return true;
}

// Searched and rehearsed within `room`; where it lies is not decided.
MemoryPlan plan_within(Bytes room, const StepRecord& step, PlanLimits limits,
                       std::vector<PlannedRelease> draft) {
  limits.room = room;
  if (draft.empty()) draft = make_release_plan(step, limits).releases;
  MemoryPlan plan;
  plan.releases = search_releases(step, limits, draft, kEffort).releases;
  plan.expected = StepRehearsal(step, limits).run(plan.releases, &plan.memory);
  return plan;
}

}  // namespace

std::optional<MemoryPlan> make_memory_plan(const StepRecord& step, const PlanLimits& limits,
                                           const std::vector<Bytes>& strangers,
                                           std::vector<PlannedRelease> draft) {
  Bytes room = limits.room;
  for (const Bytes size : strangers) room -= size;
  for (const double slack : kSlacks) {
    const Bytes spared = share_of(limits.room, slack);
    if (room - spared <= Bytes(0)) break;
    MemoryPlan plan = plan_within(room - spared, step, limits, std::move(draft));
    draft = plan.releases;
    if (!plan.expected.possible || plan.expected.lacking > kHopeless * spared) break;
    if (lay_out(plan, step, strangers, limits.room)) return plan;
  }
  if (room <= Bytes(0)) return std::nullopt;
  MemoryPlan plan = plan_within(room, step, limits, std::move(draft));
  const bool nearly = plan.expected.lacking <= share_of(room, kNearly);
  if (!plan.expected.possible || !nearly) return std::nullopt;
  const bool fits = plan.expected.lacking == Bytes(0);
  if (fits && lay_out(plan, step, strangers, limits.room)) return plan;
  for (const Bytes size : strangers) plan.strangers.push_back({Offset(0), size});
  return plan;
}

}  // namespace tidemark
