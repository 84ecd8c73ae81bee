#include "examples/common/memory_limits.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tidemark {
namespace {

constexpr double kDiskShare = 0.95;

Bytes default_host_limit(const MemoryFacts& facts) {
  if (!facts.device_memory) return Bytes(0);
  const Bytes wanted = 2 * facts.unmanaged_peak;
  if (!facts.memory) return wanted;
  const Bytes left = *facts.memory - facts.loading - facts.program;
  return std::clamp(align_down(left), Bytes(0), wanted);
}

// The memory of the process if nothing is released. None: a budget or device memory is given,
// or the program's own need is not known.
std::optional<Bytes> untouched_need(const MemoryFacts& facts) {
  if (facts.budget || facts.device_memory || !facts.untouched_program) return std::nullopt;
  return facts.unmanaged_peak + facts.host_limit.value_or(Bytes(0)) + facts.loading +
         *facts.untouched_program;
}

// The least that the arena takes of the process's memory.
Bytes arena_of(const MemoryFacts& facts, const MemoryLimits& limits, Bytes least) {
  return facts.device_memory ? Bytes(0) : facts.budget ? limits.arena : least;
}

}  // namespace

Bytes managed_beside(const MemoryFacts& facts, const MemoryLimits& limits) {
  return limits.host + facts.loading + facts.program;
}

Bytes least_memory(const MemoryFacts& facts, const MemoryLimits& limits, Bytes least) {
  const Bytes managed = arena_of(facts, limits, least) + managed_beside(facts, limits);
  return std::min(managed, untouched_need(facts).value_or(managed));
}

MemoryLimits derive_limits(const MemoryFacts& facts) {
  const Bytes peak = facts.unmanaged_peak;
  MemoryLimits limits;
  limits.host = facts.host_limit.value_or(default_host_limit(facts));
  limits.beside = managed_beside(facts, limits);
  limits.arena = peak;
  const std::optional<Bytes> untouched = untouched_need(facts);
  if (facts.memory && untouched && *untouched <= *facts.memory) {
    limits.beside = std::min(limits.beside, *untouched - peak);
  } else if (facts.budget) {
    limits.arena = *facts.budget;
    limits.is_limited = true;
  } else if (facts.device_memory) {
    limits.is_limited = *facts.device_memory < peak;
    limits.arena = std::min(peak, align_down(*facts.device_memory));
  } else if (facts.memory) {
    const Bytes left = std::max(Bytes(0), align_down(*facts.memory - limits.beside));
    limits.is_limited = left < peak;
    limits.arena = std::min(peak, left);
  }
  limits.promised =
      limits.beside + (facts.device_memory ? Bytes(0) : std::min(limits.arena, peak));
  return limits;
}

void check_limits(const MemoryFacts& facts, const MemoryLimits& limits, Bytes least,
                  bool is_least, const std::string& remedy) {
  const bool arena_is_given = facts.budget || facts.device_memory;
  if (arena_is_given && limits.arena < least) {
    throw InfeasibleBudget(limits.arena, least, is_least, remedy);
  }
  if (!facts.memory) return;
  const Bytes arena = arena_of(facts, limits, least);
  const Bytes needed = least_memory(facts, limits, least);
  if (needed <= *facts.memory) return;
  if (needed < arena + managed_beside(facts, limits)) {
    throw InfeasibleMemory(
        fmt::format("--memory: {} is too little: training needs at least {} bytes ({}), with "
                    "which nothing is released",
                    format_bytes(*facts.memory), needed.count(), format_bytes(needed)));
  }
  const auto part = [](Bytes bytes, const char* what) {
    return bytes == Bytes(0) ? "" : fmt::format("{} {}, ", format_bytes(bytes), what);
  };
  throw InfeasibleMemory(fmt::format(
      "--memory: {} is too little: training needs at least {} bytes ({}): {}{}{}{} for the "
      "program{}",
      format_bytes(*facts.memory), needed.count(), format_bytes(needed),
      part(arena, facts.budget ? "of --budget"
                  : is_least   ? "for the smallest feasible arena"
                               : "for the smallest arena that the dry run found to work"),
      part(limits.host, "of host tier"), part(facts.loading, "for loading data"),
      format_bytes(facts.program), remedy));
}

Bytes spare_disk_space(Bytes wanted, Bytes free) {
  return std::min(wanted, share_of(free, kDiskShare));
}

}  // namespace tidemark
