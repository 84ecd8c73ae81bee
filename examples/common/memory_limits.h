// Derives the limits of each part of a run from the flags and the results of a dry run. Pure
// functions: facts in, limits out.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/core/units.h"

namespace tidemark {

struct MemoryFacts {
  std::optional<Bytes> memory;         // --memory: the whole process
  std::optional<Bytes> budget;         // --budget: the arena alone
  std::optional<Bytes> host_limit;     // --host-limit
  std::optional<Bytes> device_memory;  // none: the arena is in RAM, as on a CPU
  Bytes unmanaged_peak{0};             // of the arena
  Bytes loading{0};                    // for loading data
  Bytes program{0};                    // upper bound for the program itself
  // The same with an arena as large as the unmanaged run needs, where nothing is released or
  // planned. None: not known to be less.
  std::optional<Bytes> untouched_program{};
};

struct MemoryLimits {
  Bytes arena{0};
  bool is_limited = false;  // false: the arena is as large as the unmanaged run needs
  Bytes host{0};            // of the host tier
  // Memory of the process besides the arena: the host tier, loading, the program.
  Bytes beside{0};
  Bytes promised{0};  // upper bound on the process's memory
};

// By default, a CPU has no host tier, which would take the very memory that the arena saves.
// Other devices have one of twice the unmanaged peak, as far as `memory` allows. An arena in
// RAM gets whatever `memory` leaves after everything else, but no more than the unmanaged run
// needs. If `memory` can hold the unmanaged run with `untouched_program`, the arena gets the
// unmanaged peak. The arena may come out too small, even 0: check_limits() rejects that.
MemoryLimits derive_limits(const MemoryFacts& facts);

// Memory of the process besides an arena that must release something.
Bytes managed_beside(const MemoryFacts& facts, const MemoryLimits& limits);
// The smallest sufficient value of --memory. `least`: smallest feasible arena.
Bytes least_memory(const MemoryFacts& facts, const MemoryLimits& limits, Bytes least);

// A run needs more memory than the process may take.
class InfeasibleMemory : public Error {
 public:
  using Error::Error;
};

// `least`: smallest feasible arena with these limits. Throws InfeasibleBudget or
// InfeasibleMemory, depending on the flag at fault, with the smallest sufficient value; without
// `is_least`, with a value known to suffice. `remedy` ends the message.
void check_limits(const MemoryFacts& facts, const MemoryLimits& limits, Bytes least,
                  bool is_least = true, const std::string& remedy = "");

// The disk tier's limit: `wanted`, or as much as a disk with `free` bytes can spare. A
// twentieth of `free` is left for others.
Bytes spare_disk_space(Bytes wanted, Bytes free);

}  // namespace tidemark
