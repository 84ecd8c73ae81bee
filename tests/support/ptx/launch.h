// Runs a kernel on all blocks of a grid, one after the other.
#pragma once

#include <optional>
#include <span>

#include "tests/support/ptx/block.h"

namespace tidemark::ptx {

// A launch's value for one parameter.
struct Argument {
  const void* data = nullptr;
  std::optional<int64_t> bytes{};  // where the caller knows them
};

// Returns what it did. `shared`: bytes of shared memory behind what the kernel declares. Throws
// Violation, or NotCovered. REQUIRES: each argument has as many bytes as its parameter
// declares, unless its size is given.
Counts launch(const Kernel& kernel, const Extents& grid, const Extents& threads,
              std::span<const Argument> arguments, const GlobalMemory& global,
              int64_t shared = 0);

}  // namespace tidemark::ptx
