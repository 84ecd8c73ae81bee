// A relaxation of a rematerialisation problem to a few moments; its optimum is a lower bound on
// the time of every schedule, in whatever order.
//
// Moments are first runs of nodes of one dependency chain, so every schedule passes them in
// that order. They cut time into windows: window w begins when moment w's run starts (w = 0: at
// the start) and ends when the next moment's run starts; that run itself is its last.
//
//              moment 1        moment 2
//   window 0      |    window 1   |    window 2
//   ..........[p1].|..........[p2].|...........
//
// Variables, all 0 or 1 (relaxed: between):
//   run(o, w)   the first run in window w of o's node takes option o (split by variant where
//               the node has several that differ in time and workspace)
//   live(i, w)  i is live when moment w's run starts
//   through(i, w)  i is live throughout window w: at both ends, and not run in between
// Rows: a run needs each input live at the window's start or run in it; live values stem from
// the window before; forced nodes run in time; memory at each moment; and, for runs with
// several variants, memory held throughout their window.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/bounds/linear_program.h"
#include "runtime/planner/remat/forced_runs.h"

namespace tidemark::planner::remat {

struct MomentProgram {
  LinearProgram linear;
  double constant = 0;                // to add to its optimum
  std::vector<uint8_t> is_integer{};  // by variable: 0 or 1 in the unrelaxed program
};

// `moments`: nodes of forced.chain(), in its order.
MomentProgram make_moment_program(const Options& options, const ForcedRuns& forced,
                                  const std::vector<NodeId>& moments);

}  // namespace tidemark::planner::remat
