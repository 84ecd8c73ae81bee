// A lower bound on the time of a step under a budget: no schedule that runs the program's
// operators in the trace's order takes less, whatever it evicts, recomputes, offloads and
// reloads, and wherever blocks lie. The step is one of many that are alike: it begins as it
// ends, storage by storage, and copies may be under way in between. In a budget that nothing
// fits, the bound is some number.
//
// The bound is that of a linear program. Calls 0..n-1 run in order on one compute stream, call
// k for c_k. Whatever a schedule adds (recomputation, waiting, moves) lies between calls.
// Memory is looked at only when some calls k_1 < ... < k_J start, where most is live; interval
// j is from the start of k_j to that of k_(j+1), interval 0 from the step's start, interval J
// to its end. Variables, all >= 0:
//
//   w_j     time added in interval j that y does not count
//   P_s,j   share of the bytes of s in memory when k_j starts; for s in a gap: between two uses
//           (not from an upload, which may be late, to the next); of what exists between steps
//           also from its last use or from the step's start on; or past its last use and wanted
//           for a recomputation (a tail, whose s need not exist)
//   y_s,j   1 if the call that made s runs again in interval j
//   f_s,j   1 if it does, for the first time in the gap
//   E_s,j   share of the bytes of s that exist when k_j starts: in memory, or so copied
//   r_s,j   share of the bytes of s that are not there when k_j starts, and whose first return,
//           in interval j, is by reload
//   U_v,j   share of the bytes of version v of a storage that has been copied to a tier before
//           k_j starts, and may stay there at no cost; constantly 1 for what was uploaded, what
//           no step writes, and what another step made: then there is no E
//
// Rows, for every j:
//
//   memory     what k_j uses, workspace included and in place where it can be,
//              + sum of size_s P_s,j <= budget
//   return     P_s,j+1 <= P_s,j + y_s,j + r_s,j;  1 <= the same at the last k_j of a gap that
//              ends in a use
//   existence  r_s,j <= U_s,j <= E_s,j;   P_s,j + r_s,j <= E_s,j <= P_s,j + U_s,j;
//              E_s,j+1 <= E_s,j + y_s,j;  but for tails
//              1 - E_s,j <= sum of y_s,i over i >= j in the gap
//   first run  f_s,j <= y_s,j;  sum of f_s,i over the gap <= 1;  but for tails 1 - E_s,j <=
//   that
//              sum
//   copies     U_v,j <= U_v,j+1, and 0 while v is not written yet; one copy serves all gaps of
//              v
//   operands   y_s,j <= P_x,j + y_x,j + r_x,j and y_s,j <= E_x,j + y_x,j for each input x of
//              the call that made s, unless a call from k_j to k_(j+1), both included, uses x
//   to a run   sum of f_s,i over i >= j <= P_x,j + sum of y_x,i + r_x,i over i >= j, for each
//              such input x if no call uses it from k_j on in the gap: a run needs all of x;
//              the same sum <= E_x,j + sum of y_x,i over i >= j, and <= E_x at the first of its
//              own gap's moments + sum of f_x over that gap
//   link out   sum of bytes_v (U_v,j+1 - U_v,j) <= out bandwidth * length of interval j
//   link in    sum of bytes_s r_s,j             <= in bandwidth * length of interval j
//
// The length of an interval is what its calls take + sum of c(s) y_s,j + w_j; of interval 0
// also what its calls wait for uploads. The objective is the least sum of c(s) y_s,j + w_j.
// Every schedule gives values that satisfy the rows; fractions are allowed too, hence a bound.
// simulate() may say less of a schedule that copies in at a step's end what the next step reads
// at once, as it looks at one step and does not wait for that.
// What is left out only lowers it:
// - memory between the calls looked at, fragmentation, alignment, the room that recomputation
//   itself needs, latency, a limited tier, and that the link's directions may slow each other;
// - storages below 64 KiB; what the program keeps for a later step and could compute again;
// - a call with several outputs is paid for one of them, the largest; a call that runs again
//   several times in an interval is paid once;
// - eviction is ruled out only for what was written in place, existed before the step, was
//   uploaded, or may not be evicted.
//
// Threads: functions without state.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

struct TimeBoundOptions {
  int64_t iterations = 3000;  // of the linear program's method
  // The number of calls looked at, about; the best of these programs counts. More give a larger
  // program, not always a better bound: shares then add up over more and shorter intervals.
  std::vector<uint32_t> looked_at{1, 2, 4, 12};
  const std::atomic<bool>* stop = nullptr;
};

struct StepTimes {
  Nanos ample{0};  // in ample space: every call once, and the wait for uploads before the first
  Nanos least{0};  // the bound; never below `ample`
};

// StepTimes::ample alone, at once.
Nanos ample_time(const StepTrace& trace, const PlanLimits& limits);

// None: no schedule fits, because a call alone needs more than the budget.
std::optional<StepTimes> time_bound(const StepTrace& trace, const PlanLimits& limits,
                                    const TimeBoundOptions& options = {});

}  // namespace tidemark::planner
