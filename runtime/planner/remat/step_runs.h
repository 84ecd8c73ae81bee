// A schedule of a step's problem in terms of the step: which operator runs, which values leave.
// Serves step_schedule.cc.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/remat/problem_from_step.h"
#include "runtime/planner/remat/remat_schedule.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner::remat {

// The program's operators in the order of their first runs; shorter if some never run.
std::vector<uint32_t> order_of_first_runs(const StepTrace& trace, const StepProblem& problem,
                                          const std::vector<Event>& runs);

// The trace in which each call reads what it reads as it first runs, by the variant it takes.
StepTrace as_first_run(StepTrace trace, const StepProblem& problem,
                       const std::vector<Event>& runs);

struct StepRuns {
  enum class Kind : uint8_t { kFirst, kAgain, kFree };
  struct Item {
    Kind kind = Kind::kFirst;
    uint32_t op = 0;              // of the reordered step
    NodeId node = kNoNode;        // kFree: whose value is freed
    std::vector<NodeId> nodes{};  // kFirst, kAgain: the operator's nodes that run, riders too
    // The storage whose space the first output takes; kScratch: none.
    uint32_t overwrites = tidemark::Schedule::kScratch;
    uint32_t variant = 0;  // as Schedule::Instruction::variant
  };
  std::vector<Item> list;
};

// `step`: the trace in that order.
StepRuns runs_of_step(const StepTrace& step, const std::vector<uint32_t>& order,
                      const StepProblem& problem, const std::vector<Event>& runs);

// Whether storages may be evicted while the program holds them.
class EvictionFacts {
 public:
  EvictionFacts(const StepTrace& step, const StepRuns& runs);

  // Whether a storage that leaves at runs.list[at] can be computed at any time until it is
  // computed again or the program drops it. No, if that takes old contents of a storage that is
  // written in place, or a storage that goes and cannot be computed itself.
  bool may_evict(uint32_t storage, size_t at) const;

 private:
  bool can_be_made_before(uint32_t storage, uint32_t end) const;

  const StepTrace& step_;
  std::vector<uint32_t> producer_;  // by storage: a call that writes nothing in place
  std::vector<std::vector<uint32_t>> writes_;  // by storage: operators that write it in place
  std::vector<uint32_t> released_;             // by storage: the operator after which
  std::vector<std::vector<size_t>> runs_of_;   // by operator: positions in the list
  std::vector<uint32_t> first_runs_before_;    // by position in the list
};

}  // namespace tidemark::planner::remat
