// A random program of toy operators: shared inputs, dropped handles, in-place updates, reads of
// values. The same for the same seed, whatever memory it runs in.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/core/errors.h"
#include "tests/support/toy_program.h"

namespace tidemark::testing {

// What its largest call needs: seven operands (inputs, outputs and workspace) of 2048 words.
inline constexpr Bytes kRandomProgramSmallest{2048 * 4 * 7};

// Called before each call of a step, with the handles that the program holds, the parameters
// first; the updates of the parameters count as calls after the others. It may make calls of
// its own. False: the step ends there. If it throws StepStopped, the step is aborted and the
// program goes on with the next one.
using BeforeCall = std::function<bool(int step, int call, std::vector<Handle>& live)>;
struct StepStopped : Error {
  StepStopped() : Error("stopped") {}
};
// Errors of the runtime that the program goes on after, with the next step.
using Forgiven = std::function<bool(const Error& error)>;

inline constexpr int kRandomProgramParameters = 4;

// Hashes of every value that the program reads, in order. `alike`: each step runs the same
// calls (but for the first, which has nothing from a step before it).
std::vector<uint64_t> run_random_program(
    Session& session, uint32_t seed, int steps, int calls, bool alike = false,
    const BeforeCall& before = [](int, int, std::vector<Handle>&) { return true; },
    const Forgiven& forgiven = [](const Error&) { return false; });

}  // namespace tidemark::testing
