// A random program of toy operators: shared inputs, dropped handles, in-place updates, reads of
// values. It depends on the seed only, not on the memory that it runs in.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/core/errors.h"
#include "tests/support/toy_program.h"

namespace tidemark::testing {

// The bytes of its largest call: seven operands (inputs, outputs and workspace) of 2048 words.
inline constexpr Bytes kRandomProgramSmallest{2048 * 4 * 7};

// Called before each call of a step, with the handles that the program holds, parameters first.
// Updates of the parameters count as calls after the others. The function may make calls of its
// own. If it returns false, the step ends there. If it throws StepStopped, the step is aborted
// and the program continues with the next one.
using BeforeCall = std::function<bool(int step, int call, std::vector<Handle>& live)>;
struct StepStopped : Error {
  StepStopped() : Error("stopped") {}
};
// Whether the program continues, with the next step, after this error of the runtime.
using Forgiven = std::function<bool(const Error& error)>;

inline constexpr int kRandomProgramParameters = 4;

// Returns hashes of every value that the program reads, in order. `alike`: each step runs the
// same calls, except for the first, which has nothing from an earlier step.
std::vector<uint64_t> run_random_program(
    Session& session, uint32_t seed, int steps, int calls, bool alike = false,
    const BeforeCall& before = [](int, int, std::vector<Handle>&) { return true; },
    const Forgiven& forgiven = [](const Error&) { return false; });

// The same on the CPU, in so much memory that no policy is needed.
std::vector<uint64_t> unmanaged_random_program(uint32_t seed, int steps, int calls,
                                               bool alike = false);

// Storages that the session evicted or offloaded.
int64_t releases(Session& session);

}  // namespace tidemark::testing
