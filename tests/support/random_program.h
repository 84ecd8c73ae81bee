// A random program of toy operators: shared inputs, dropped handles, in-place updates, reads of
// values. The same for the same seed, whatever memory it runs in.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/session/session.h"

namespace tidemark::testing {

// What its largest call needs: seven operands (inputs, outputs and workspace) of 2048 words.
inline constexpr Bytes kRandomProgramSmallest{2048 * 4 * 7};

// Hashes of every value that the program reads, in order. `alike`: each step runs the same
// calls (but for the first, which has nothing from a step before it).
std::vector<uint64_t> run_random_program(Session& session, uint32_t seed, int steps, int calls,
                                         bool alike = false);

}  // namespace tidemark::testing
