// A captured training step as a rematerialisation problem. `step_schedule.h` is the way back.
//
// - Fixed bytes: storages that exist before the step, and uploads.
// - A node for each call and read, with the value that it makes. Several outputs of a call are
//   one value as long as their last reader is the same. Others, such as ReLU's signs, or a
//   parameter's gradient that waits for its update, are a rider.
// - A call that writes in place runs once. If it writes a storage from before the step, later
//   readers depend on it; if it writes a value of the step, it makes a new value that takes the
//   old one's place. It comes after all runs of what read or made the old contents.
// - Storages that outlive the step become fixed when their call runs, which it does once. A
//   call with an output that may not be evicted runs once too.
// - A read runs once, after the calls before it in the program and before those after it.
// - All calls run: a node is required if no other reads its value, whichever variant it takes.
// - A call's variants are its node's, as first runs. Left out: one that reads what is there
//   before the step, or uploaded, and dropped by the program before the call.
// - A call that may overwrite an input, which the program drops after it, has a variant that
//   does, as its first run; so has each of its variants. Without StepProblemOptions::in_place
//   neither is offered.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/remat/remat_problem.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner::remat {

struct StepProblem {
  Problem problem{};
  std::vector<uint32_t> op_of{};  // by node: the operator of the trace
  // By node, by variant: as Schedule::Instruction::variant.
  std::vector<std::vector<uint32_t>> variant_of{};
  std::vector<std::vector<uint32_t>> value{};  // by node: the storages of its value
};

// Parts of the model, each of which can be left out to see what it is worth. Only `in_place`,
// `variants` and `riders` may be off where the solution becomes a schedule (step_schedule.h).
struct StepProblemOptions {
  bool in_place = true;
  bool variants = true;   // off: calls run as the program issues them
  bool riders = true;     // off: all outputs of a call are one value
  bool workspace = true;  // off: as if no call needed a workspace
  bool recompute = true;  // off: each node runs at most once
};

// Times in ms. REQUIRES: trace_violations() finds nothing.
StepProblem problem_from_step(const StepTrace& trace, const StepProblemOptions& options = {});

}  // namespace tidemark::planner::remat
