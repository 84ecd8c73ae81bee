// Searches for the fastest schedule within the budget: greedy starts, then annealing by ruin
// and repair. Each round changes the current sequence (remat_ruin.h), brings the result within
// the budget again (remat_repair.h), and takes it if it is faster, or slower by no more than
// the temperature allows. The temperature falls to nothing several times: first from some of
// the best starts each, then from the best schedule. Anytime; deterministic if `limits.nodes`
// ends it.
//
// Threads: a Search belongs to one. The Options must outlive it.
#pragma once

#include <functional>

#include "runtime/planner/limits.h"
#include "runtime/planner/remat/remat_repair.h"

namespace tidemark::planner::remat {

struct SearchOptions {
  Limits limits{};          // nodes: evaluations of a sequence
  double bound = 0;         // no schedule takes less time: the search ends where it is met
  bool first_only = false;  // ends at the first schedule within the budget
  std::vector<Sequence> starts{};  // to begin with; empty: greedy starts
};

struct SearchResult {
  Sequence sequence{};  // empty: none was found
  double time = 0;
  std::vector<Sequence> starts{};  // the best schedule and some others, for another search
  int64_t evaluations = 0;
  double seconds = 0;

  bool found() const { return !sequence.empty(); }
};

SearchResult search_schedule(const Options& options, const SearchOptions& search);

}  // namespace tidemark::planner::remat
