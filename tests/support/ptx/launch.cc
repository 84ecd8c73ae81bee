#include "tests/support/ptx/launch.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tidemark::ptx {
namespace {

constexpr int64_t kMostDeclared = 48 << 10;  // shared memory
// With what a launch asks for: on sm_86 and sm_89; others have more.
constexpr int64_t kMostShared = 99 << 10;

[[noreturn]] void refuse(Check check, const Kernel& kernel, const std::string& what) {
  throw Violation(check, "[" + std::string(name_of(check)) + "] " + kernel.name + ": " + what);
}

// The declared layout against what was passed. Where sizes are not known, arguments that are
// smaller than declared give themselves away by lying within each other.
std::vector<std::byte> copy_arguments(const Kernel& kernel,
                                      std::span<const Argument> arguments) {
  if (arguments.size() != kernel.parameters.size()) {
    refuse(Check::kParameters, kernel,
           std::to_string(arguments.size()) + " arguments for " +
               std::to_string(kernel.parameters.size()) + " parameters");
  }
  std::vector<std::byte> memory(static_cast<size_t>(kernel.parameter_bytes));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Variable& parameter = kernel.parameters[i];
    const auto begin = reinterpret_cast<uintptr_t>(arguments[i].data);
    const std::string which = "argument " + std::to_string(i);
    if (arguments[i].bytes.value_or(parameter.bytes) != parameter.bytes) {
      refuse(Check::kParameters, kernel,
             which + " has " + std::to_string(*arguments[i].bytes) + " bytes, " +
                 std::to_string(parameter.bytes) + " are declared");
    }
    if (begin % static_cast<uintptr_t>(parameter.align) != 0) {
      refuse(Check::kParameters, kernel,
             which + " is not aligned to " + std::to_string(parameter.align));
    }
    for (const Argument& other : arguments) {
      const auto at = reinterpret_cast<uintptr_t>(other.data);
      if (&other != &arguments[i] && at >= begin &&
          at < begin + static_cast<uintptr_t>(parameter.bytes)) {
        refuse(Check::kParameters, kernel, which + " is smaller than declared");
      }
    }
    std::memcpy(memory.data() + parameter.offset, arguments[i].data,
                static_cast<size_t>(parameter.bytes));
  }
  return memory;
}

}  // namespace

Counts launch(const Kernel& declared, const Extents& grid, const Extents& threads,
              std::span<const Argument> arguments, const GlobalMemory& global, int64_t shared) {
  Kernel kernel = declared;
  kernel.shared_bytes += shared;
  if (threads.count() < 1 || threads.count() > kernel.max_threads) {
    refuse(Check::kLaunchShape, kernel,
           std::to_string(threads.count()) + " threads; at most " +
               std::to_string(kernel.max_threads));
  }
  if (grid.count() < 1 || grid.x > 0x7FFFFFFF || grid.y > 0xFFFF || grid.z > 0xFFFF) {
    refuse(Check::kLaunchShape, kernel, std::to_string(grid.count()) + " blocks");
  }
  if (declared.shared_bytes > kMostDeclared || kernel.shared_bytes > kMostShared) {
    refuse(Check::kLaunchShape, kernel,
           std::to_string(kernel.shared_bytes) + " bytes of shared memory");
  }
  GlobalMemory memory = global;
  for (const GlobalRange& range : kernel.globals) {
    memory.add(reinterpret_cast<const void*>(range.begin), range.bytes, range.writable,
               range.name);
  }
  Block block(kernel, grid, threads, copy_arguments(kernel, arguments), memory);
  std::vector<int64_t> of_blocks;
  const auto all = [&] { return block.counts().flops + block.counts().tensor_flops; };
  for (int64_t i = 0; i < grid.count(); ++i) {
    const int64_t before = all();
    block.run(i);
    of_blocks.push_back(all() - before);
  }
  Counts counts = block.counts();
  counts.of_blocks = std::move(of_blocks);
  return counts;
}

}  // namespace tidemark::ptx
