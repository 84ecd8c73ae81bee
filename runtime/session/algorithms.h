// Algorithms of calls that round differently (--allow-rounding): which ones a program's calls
// could use, and which ones a session uses.
//
// A session's table is fixed when the session begins. Each run of a call, first or recomputed,
// by a policy or by a schedule, uses the table's algorithm, so results depend on the table and
// not on the budget. A training state holds the table (models/checkpoint/training_state.h).
// Without a table, every call uses its default algorithm.
//
// Threads: any; a table is immutable once a session has it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark {

// By the signature of the call (operator, attributes, shapes), which is the same in every
// process. Calls that are not in the table use their default.
using AlgorithmTable = std::map<uint64_t, std::string>;

// {"00f3...": "x64:gemm:jit", ...}
std::string to_json(const AlgorithmTable& table);
// Throws DataError, with `name` as the file.
AlgorithmTable parse_algorithms(const std::string& name, std::string_view json);

struct Algorithm {
  std::string name{};  // empty: the default
  Bytes memory{0};     // its workspace
  Nanos time{0};       // as the session's cost model expects
};

// The algorithms that a call could use, the default first.
struct AlgorithmOffer {
  std::string call{};  // for people: "conv2d (8, 56, 56, 64) ..."
  Bytes operands{0};   // inputs and outputs
  std::vector<Algorithm> algorithms{};
};
using AlgorithmOffers = std::map<uint64_t, AlgorithmOffer>;  // by signature

// For each call the algorithm with the least memory: for the smallest budget.
AlgorithmTable leanest_table(const AlgorithmOffers& offers);

// Tables worth trying in a budget, all different: first the empty one (every call's default),
// and the leanest. The others take for each call the quickest algorithm whose working set
// (operands and memory) is within a limit, as the smallest budget depends on the largest
// working set, and other calls need not be slower.
std::vector<AlgorithmTable> candidate_tables(const AlgorithmOffers& offers);

}  // namespace tidemark
