// A lower bound on the time of a step under a budget, whatever the order of its operators.
//
// time_bound.h's program for one order, weakened to what holds in all orders that the data
// allow. The operators looked at, k_1 ... k_J, lie on one path of dependences, so every
// schedule runs them in this order; interval i is again from the start of k_i to that of
// k_(i+1). Any other call u runs in an interval from e(u), by the last k_j that it depends on,
// to l(u), by the first that depends on it. For a storage s that call m makes, and k_j:
//
//   s exists when k_j starts            if l(m) is before k_j
//   s has yet to be read when k_j starts  if e(b) is from k_j on, for a reader b
//   s comes back, at the latest,        in interval L = the least l(b) of such readers
//
// Variables and rows as there (P, y, r, U, w; memory, return, copies, operands, link), with
//
//   return     1 <= P_s,j + sum of y_s,i + r_s,i over the intervals i from k_j to L
//   origin     r_s,i <= U_s at the start of i;  1 - P_s,j <= U_s,j + sum of y_s,i, i as above
//   first run  the f of the first time that the call of s runs again in the step: f_s,i <=
//   y_s,i;
//              sum of f_s,i <= 1;  1 - P_s,j <= U_s,j + that sum
//   to a run   sum of f_s,i over i from k_j on <= P_x,j + sum of y_x,i + r_x,i over the same i
//   length     of an interval: its own calls + what it adds + t_g,i for each group g of calls
//              with the same e and l; sum of t_g,i over i <= what the group takes
//
// Parameters and the optimizer's state may always be dropped: a copy is taken to exist. What
// comes in while one step ends is waited for, in that step or the next; simulate() of one step
// does not see that.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/bounds/time_bound.h"

namespace tidemark::planner {

// Few operators looked at give the best bounds; one gives a good one at once.
inline const std::vector<uint32_t> kLookedAtInAnyOrder{1, 2, 4};

// Never below the time of all calls. In a budget that nothing fits, some number. REQUIRES:
// trace_violations() finds nothing.
Nanos any_order_bound(const StepTrace& trace, const PlanLimits& limits,
                      const TimeBoundOptions& options = {.looked_at = kLookedAtInAnyOrder});

}  // namespace tidemark::planner
