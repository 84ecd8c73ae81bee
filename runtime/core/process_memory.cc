#include "runtime/core/process_memory.h"

#include <algorithm>
#include <cstdint>

#include "runtime/core/process_limits.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

// Version 1 of control groups reports at least this number if there is no limit.
constexpr int64_t kNoLimit = int64_t{1} << 60;

// Reads the file by its name in version 2 of control groups, or else by its name in version 1.
std::optional<int64_t> read_either(const ControlGroup& group, const char* version_2,
                                   const char* version_1) {
  const std::optional<int64_t> number = read_number(group.folder / version_2);
  return number ? number : read_number(group.folder / version_1);
}

std::optional<int64_t> hard_limit(const ControlGroup& group) {
  const auto limit = read_either(group, "memory.max", "memory.limit_in_bytes");
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

}  // namespace

std::optional<Bytes> peak_resident_memory() { return read_kib("/proc/self/status", "VmHWM:"); }

std::optional<Bytes> resident_memory() { return read_kib("/proc/self/status", "VmRSS:"); }

std::optional<Bytes> anonymous_memory() { return read_kib("/proc/self/status", "RssAnon:"); }

std::optional<Bytes> available_memory() { return read_kib("/proc/meminfo", "MemAvailable:"); }

std::vector<MemoryBound> memory_bounds(const fs::path& root) {
  std::vector<MemoryBound> bounds;
  if (const auto available = read_kib(root / "proc/meminfo", "MemAvailable:")) {
    bounds.push_back({"MemAvailable", *available});
  }
  for (const ControlGroup& group : control_groups("memory", root)) {
    const auto used = read_either(group, "memory.current", "memory.usage_in_bytes");
    const fs::path stat = group.folder / "memory.stat";
    const auto below =
        read_number(stat, "total_inactive_file");  // version 1: includes child groups
    const int64_t unused = below ? *below : read_number(stat, "inactive_file").value_or(0);
    for (const auto limit : {hard_limit(group), read_number(group.folder / "memory.high")}) {
      if (!used || !limit) continue;
      bounds.push_back({"the control group " + group.path,
                        Bytes(*limit - std::max<int64_t>(0, *used - unused))});
    }
  }
  for (const ProcessLimit& limit : process_limits(root)) {
    bounds.push_back({limit.name, limit.limit - limit.taken});
  }
  return bounds;
}

std::optional<MemoryCeiling> memory_ceiling(const fs::path& root) {
  const std::optional<Bytes> machine = read_kib(root / "proc/meminfo", "MemTotal:");
  if (!machine) return std::nullopt;
  MemoryCeiling least{"this machine", *machine};
  for (const ControlGroup& group : control_groups("memory", root)) {
    const std::optional<int64_t> limit = hard_limit(group);
    if (!limit || Bytes(*limit) >= least.memory) continue;
    least = {"the control group " + group.path, Bytes(*limit)};
  }
  least.memory += read_kib(root / "proc/meminfo", "SwapTotal:").value_or(Bytes(0));
  return least;
}

std::optional<AutoMemory> auto_memory(Bytes resident, const std::vector<MemoryBound>& bounds) {
  const auto tightest = std::min_element(
      bounds.begin(), bounds.end(),
      [](const MemoryBound& a, const MemoryBound& b) { return a.left < b.left; });
  if (tightest == bounds.end()) return std::nullopt;
  const Bytes left = std::max(Bytes(0), tightest->left);
  const Bytes margin = std::max(kLeastMargin, Bytes(left.count() / 16));
  return AutoMemory{std::max(Bytes(0), resident + left - margin), margin, tightest->what};
}

}  // namespace tidemark
