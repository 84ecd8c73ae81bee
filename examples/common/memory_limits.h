// From what the flags allow and what a dry run has found to what each part of a run gets.
// Pure: facts in, limits out.
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
  Bytes loading{0};                    // what loading data takes
  Bytes program{0};                    // what the program itself takes at most
  // The same where the arena is as large as the unmanaged run wants it, so that nothing is
  // released or planned. None: not known to be less.
  std::optional<Bytes> untouched_program{};
};

struct MemoryLimits {
  Bytes arena{0};
  bool is_limited = false;  // false: the arena is as large as the unmanaged run wants it
  Bytes host{0};            // of the host tier
  // Of the process beside the arena: the host tier, loading, the program.
  Bytes beside{0};
  Bytes promised{0};  // the most that the process takes
};

// By default a CPU has no host tier, which would take the very memory that the arena saves;
// other devices have one of twice the unmanaged peak, as far as `memory` allows. In RAM the
// arena is what `memory` leaves beside all else, and no more than the unmanaged run wants;
// where `memory` holds the unmanaged run with `untouched_program`, that is the arena. The arena
// may come out too small, even 0: check_limits() refuses that.
MemoryLimits derive_limits(const MemoryFacts& facts);

// Of the process beside an arena in which something has to be released.
Bytes managed_beside(const MemoryFacts& facts, const MemoryLimits& limits);
// The least value of --memory that would do. `least`: smallest feasible arena.
Bytes least_memory(const MemoryFacts& facts, const MemoryLimits& limits, Bytes least);

// What a run asks for is more than the process may take.
class InfeasibleMemory : public Error {
 public:
  using Error::Error;
};

// `least`: smallest feasible arena with these limits. Throws InfeasibleBudget or
// InfeasibleMemory, whichever flag is at fault, with the least value that would do; without
// `is_least`, that is known to do. `remedy` ends the message.
void check_limits(const MemoryFacts& facts, const MemoryLimits& limits, Bytes least,
                  bool is_least = true, const std::string& remedy = "");

// The disk tier's limit: `wanted`, or what a disk with `free` bytes can spare. A twentieth of
// it stays free for others.
Bytes spare_disk_space(Bytes wanted, Bytes free);

}  // namespace tidemark
