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

}  // namespace

MemoryLimits derive_limits(const MemoryFacts& facts) {
  const Bytes peak = facts.unmanaged_peak;
  MemoryLimits limits;
  limits.host = facts.host_limit.value_or(default_host_limit(facts));
  limits.beside = limits.host + facts.loading + facts.program;
  limits.arena = peak;
  if (facts.budget) {
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

void check_limits(const MemoryFacts& facts, const MemoryLimits& limits, Bytes least) {
  const bool arena_is_given = facts.budget || facts.device_memory;
  if (arena_is_given && limits.arena < least) throw InfeasibleBudget(limits.arena, least);
  if (!facts.memory) return;
  const Bytes arena = facts.device_memory ? Bytes(0) : facts.budget ? limits.arena : least;
  const Bytes needed = arena + limits.beside;
  if (needed <= *facts.memory) return;
  const auto part = [](Bytes bytes, const char* what) {
    return bytes == Bytes(0) ? "" : fmt::format("{} {}, ", format_bytes(bytes), what);
  };
  throw InfeasibleMemory(fmt::format(
      "--memory: {} is too little: at least {} bytes ({}): {}{}{}{} for the program",
      format_bytes(*facts.memory), needed.count(), format_bytes(needed),
      part(arena, facts.budget ? "of --budget" : "for the smallest feasible arena"),
      part(limits.host, "of host tier"), part(facts.loading, "for loading data"),
      format_bytes(facts.program)));
}

Bytes spare_disk_space(Bytes wanted, Bytes free) {
  return std::min(wanted, share_of(free, kDiskShare));
}

}  // namespace tidemark
