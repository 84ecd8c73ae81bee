#include "runtime/delta/tide/memory_plan.h"

#include <cstddef>
#include <utility>

#include "runtime/delta/tide/plan_search.h"
#include "runtime/planner/layout/layout.h"

namespace tidemark {
namespace {

// Of the room, what blocks may lose by not lying close: tried one after the other.
constexpr double kSlacks[] = {0.02, 0.045, 0.08};

// Of which so many times may lack before more of it is of no use either.
constexpr int64_t kHopeless = 4;

// Of a search, in calls gone through, and of a layout's, in nodes: about a second, where they
// are used up.
constexpr int64_t kEffort = 20'000'000;
constexpr int64_t kLayoutNodes = 4'000;
constexpr double kLayoutSeconds = 5;  // which ends it on a machine that is too slow for that

// False, and the plan is as it was, if no layout within `capacity` was found.
bool lay_out(MemoryPlan& plan, const std::vector<Bytes>& strangers, Bytes capacity) {
  const MemoryEvents& memory = plan.memory;
  std::vector<planner::Buffer> buffers;
  for (size_t b = 0; b < memory.blocks.size(); ++b) {
    const MemoryEvents::Block& block = memory.blocks[b];
    const int64_t begin = b < memory.there ? 0 : static_cast<int64_t>(block.begin) + 1;
    buffers.push_back({begin, static_cast<int64_t>(block.end) + 1, block.size});
  }
  const auto end = static_cast<int64_t>(memory.events.size()) + 1;
  for (const Bytes size : strangers) buffers.push_back({0, end, size});
  planner::LayoutOptions options;
  options.limits.nodes = kLayoutNodes;
  options.limits.seconds = kLayoutSeconds;
  options.target = capacity;
  const planner::Layout layout = planner::plan_layout(buffers, options);
  if (layout.height > capacity) return false;
  const auto first_stranger =
      layout.offsets.begin() + static_cast<ptrdiff_t>(memory.blocks.size());
  plan.offsets.assign(layout.offsets.begin(), first_stranger);
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
    if (lay_out(plan, strangers, limits.room)) return plan;
  }
  if (room <= Bytes(0)) return std::nullopt;
  MemoryPlan plan = plan_within(room, step, limits, std::move(draft));
  if (!plan.expected.possible || plan.expected.lacking > Bytes(0)) return std::nullopt;
  if (lay_out(plan, strangers, limits.room)) return plan;
  for (const Bytes size : strangers) plan.strangers.push_back({Offset(0), size});
  return plan;
}

}  // namespace tidemark
