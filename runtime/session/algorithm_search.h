// Chooses the algorithms of a program's calls by dry runs, before its first step:
//
//   const std::vector<AlgorithmTable> tables = candidate_tables(find_offers(options, program));
//   DryRunWork work;
//   const auto found = quickest_algorithms(options, tables, program, work);
//   Session session(found->options);
//
// The choice depends on the program, the machine's kernels, the modelled or given costs, and
// the budget. Whoever needs the same bits in another budget gives that session the same table.
//
// Threads: the calling thread, whose current session is the same afterwards.
#pragma once

#include <optional>
#include <vector>

#include "runtime/session/algorithms.h"
#include "runtime/session/dry_run.h"

namespace tidemark {

// What the program's calls could use on the device of `options`.
AlgorithmOffers find_offers(const SessionOptions& options, const Program& program);

struct ChosenAlgorithms {
  SessionOptions options;  // with the algorithms and their unmanaged peak
  UnmanagedNeed need;
};

// The table with which the program's first step is quickest in the budget of `options`.
// Simulated steps without plans rank the tables. The best is taken only if, with plans, its
// step is quicker than with the first table with which a step completes. "Quicker" is by
// kClearlyQuicker. `work` is shared out among the simulations. None: no step completes within
// the budget and the work.
inline constexpr double kClearlyQuicker = 1.02;
std::optional<ChosenAlgorithms> quickest_algorithms(const SessionOptions& options,
                                                    const std::vector<AlgorithmTable>& tables,
                                                    const Program& program, DryRunWork& work);

// `options` with this table, and the unmanaged peak that results.
ChosenAlgorithms with_algorithms(SessionOptions options, AlgorithmTable table,
                                 const Program& program);

}  // namespace tidemark
