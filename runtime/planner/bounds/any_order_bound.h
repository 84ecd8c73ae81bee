// A lower bound on the time of a step under a budget, whatever the order of its operators.
//
// time_bound.h's program for one order, weakened to what holds in all orders that the data
// allow. The operators looked at, k_1 ... k_J, lie on one path of dependences, so every
// schedule runs them in this order; interval i is again from the start of k_i to that of
// k_(i+1). Any other call u runs in an interval from e(u), by the last k_j that it depends on,
// to l(u), by the first that depends on it. For a storage s that call m makes, and k_j:
//
//   s exists when k_j starts            if l(m) is before k_j, or s exists before the step
//   s has yet to be used when k_j starts  if e(b) is from k_j on, for a call b that uses s, in
//                                       this step or, of what exists between steps, the next
//   s comes back, at the latest,        in interval L = the least l(b) of such calls; for the
//                                       next k_i that is one, before it starts
//
// Variables and rows as there (P, y, r, U, E, w; memory, return, copies, operands, link), with
//
//   return     1 <= P_s,j + sum of y_s,i + r_s,i over the intervals i from k_j to L
//   existence  of what the step makes: r_s,i <= U_s and P_s + r_s,i <= E_s at the start of i;
//              U_s,j <= E_s,j <= P_s,j + U_s,j;  E_s,j+1 <= E_s,j + y_s,j;
//              1 - E_s,j <= sum of y_s,i, i as above
//   first run  the f of the first time that the call of s runs again once s exists in every
//              order: f_s,i <= y_s,i;  sum of f_s,i <= 1;  1 - E_s,j <= that sum
//   to a run   sum of f_s,i over i from k_j on <= P_x,j + sum of y_x,i + r_x,i over the same i
//              and <= E_x,j + sum of y_x,i;  at the first such k_j, <= E_x,j + sum of all f_x
//   length     of an interval: its own calls + what it adds + t_g,i for each group g of calls
//              with the same e and l; sum of t_g,i over i <= what the group takes
//
// State is what lives through all steps and a call u writes, for the last time in each. U_s,j
// counts what has been copied of the version that u makes, U'_s,j of the one that u made a step
// before. These are the same copies, one step apart: U is 0 before e(u), grows to the step's
// end and goes on as U' in the next step, up to the last k_j before l(u). Both take the link's
// time in the intervals in which they grow.
//
//   state      1 - P_s,j <= U_s,j + U'_s,j
//
// This holds wherever a schedule runs u. If u has run when k_j starts, what is away of s was
// copied since; if not, it was copied since u ran a step before. A step ends as it begins, so U
// at its end is U' at the start of the next.
//
// E holds what is in memory or has been copied. What is in E when k_(j+1) starts, and was not
// when k_j did, was computed in between: a copy needs bytes in memory.
//
// Of what lives through all steps but belongs to the program's data, or is only read, a copy is
// taken to exist. What comes in while one step ends is waited for, in that step or the next;
// simulate() of one step does not see that, nor that it ends with state in memory which the
// next begins without.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/bounds/time_bound.h"

namespace tidemark::planner {

// Few operators looked at give the best bounds; one gives a good one at once. If all updates
// come later, the last operator before them is looked at as well: what they write is not copied
// before it.
inline const std::vector<uint32_t> kLookedAtInAnyOrder{1, 2, 4};

// Never below the time of all calls. In a budget that nothing fits, some number. REQUIRES:
// trace_violations() finds nothing.
Nanos any_order_bound(const StepTrace& trace, const PlanLimits& limits,
                      const TimeBoundOptions& options = {.looked_at = kLookedAtInAnyOrder});

}  // namespace tidemark::planner
