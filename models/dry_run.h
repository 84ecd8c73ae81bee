// How much memory a program needs, found on a simulated device before it runs for real: in
// milliseconds, without data.
//
// The same program is built in a session on the simulator with the profile of the real device
// (the CPU's is "host"; a GPU's is its own, which needs that GPU), whose kernels are prepared
// for their workspaces but not run. Layout
// depends on the order of calls alone, so what is found is what the real run reaches, to the
// byte.
//
// Threads: the calling thread; its current session is the same afterwards.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/memory/arena.h"
#include "runtime/session/session.h"

namespace tidemark {

// Builds a program in the current session and gives its steps, each to be run as one
// Session::step: enough of them that every kind occurs (two training steps, a smaller last
// batch, evaluation).
using Program = std::function<std::vector<std::function<void()>>()>;

// What a program takes when nothing is ever released.
struct UnmanagedNeed {
  Bytes peak{0};  // highest end offset in the arena: a budget at which it runs untouched
  Bytes live{0};  // the most that was live at once
  CategoryBytes categories;   // what that consisted of
  Bytes largest_operator{0};  // largest working set of one operator: no budget can be smaller
  std::string operator_name;  // whose it is
  int64_t operators = 0;      // most in one step
  Nanos first_step{0};        // modelled duration of the program's first step
};
UnmanagedNeed measure_unmanaged(const SessionOptions& options, const Program& program);

// The smallest budget at which the austere schedule completes with the tiers of `options`,
// running no more than kMostRecomputations times the operators of a step again (just above what
// cannot be done at all, with tiers that are too small, a step would be all recomputation). At
// most the unmanaged peak, which holds for sessions that are told of it
// (SessionOptions::unmanaged_peak).
inline constexpr int64_t kMostRecomputations = 16;
struct MinimumBudget {
  Bytes budget{0};
  CategoryBytes categories{};  // what was live at the peak
  int probes = 0;              // schedules tried
};
MinimumBudget find_minimum_budget(const SessionOptions& options, const Program& program,
                                  const UnmanagedNeed& need);

// The options with which the real run completes at its budget, which is at least the minimum.
//
// With ample tiers any policy does, and they come back as they are. Where tiers are limited,
// what a policy has put where decides whether it gets on; so it is tried here, and the real run
// keeps to the costs that were tried. If it does not complete, the austere schedule is used; if
// the budget is one of the rare ones above the minimum at which that fails too, within the
// minimum.
SessionOptions feasible_schedule(SessionOptions options, const Program& program,
                                 const UnmanagedNeed& need, const MinimumBudget& minimum);

// The simulated twin of a session: the same but for its device.
SessionOptions simulated(SessionOptions options);

}  // namespace tidemark
