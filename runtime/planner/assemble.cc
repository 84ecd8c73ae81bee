#include "runtime/planner/assemble.h"

#include <algorithm>

#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/lifetimes.h"

namespace tidemark::planner {

Plan assemble(const Problem& problem, const std::vector<OpId>& order, bool in_place,
              const Place& place) {
  Plan plan;
  plan.order = order;
  plan.placements = lifetimes(problem, order);
  if (in_place) plan.in_place = usable_in_place(problem, plan.placements, order);
  const Blocks blocks = to_blocks(plan.placements, plan.in_place);
  const Offsets offsets = place(blocks.buffers);
  for (size_t k = 0; k < plan.placements.size(); ++k) {
    plan.placements[k].offset = offsets[blocks.block_of[k]];
  }
  fill_figures(plan);
  return plan;
}

void fill_figures(Plan& plan) {
  plan.load = max_load(to_blocks(plan.placements, plan.in_place).buffers);
  Offset top;
  for (const Placement& p : plan.placements) {
    if (p.size > Bytes(0) && p.end > p.begin) top = std::max(top, p.offset + p.size);
  }
  plan.peak = top - Offset();
}

}  // namespace tidemark::planner
