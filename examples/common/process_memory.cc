#include "examples/common/process_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace tidemark {
namespace {

// Of a line "NAME: NUMBER kB".
std::optional<Bytes> read_kib(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string key;
  while (file >> key) {
    int64_t kib = 0;
    if (key == name && file >> kib) return Bytes(kib * 1024);
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

// None for a file that is not there, and for "max".
std::optional<Bytes> read_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return Bytes(number);
  return std::nullopt;
}

// Of a line "NAME NUMBER".
Bytes read_stat(const std::filesystem::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string key;
  int64_t number = 0;
  while (file >> key >> number) {
    if (key == name) return Bytes(number);
  }
  return Bytes(0);
}

// How one version of control groups names its files.
struct GroupFiles {
  std::vector<const char*> limits;
  const char* used;
  const char* unused_file_pages;  // in memory.stat
};
const GroupFiles kVersion1{
    {"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file"};
const GroupFiles kVersion2{{"memory.max", "memory.high"}, "memory.current", "inactive_file"};

// Version 1 says so for no limit.
constexpr Bytes kNoLimit{int64_t{1} << 60};

// Of a group and of those above it, up to `mount`. Inside a container the path may be one that
// exists outside only; the container's own group is then at `mount`.
void add_groups(const std::filesystem::path& mount, std::string group, const GroupFiles& files,
                std::vector<MemoryBound>& bounds) {
  while (true) {
    const std::filesystem::path folder = mount.string() + group;
    const std::optional<Bytes> used = read_number(folder / files.used);
    for (const char* name : files.limits) {
      const std::optional<Bytes> limit = read_number(folder / name);
      if (!used || !limit || *limit >= kNoLimit) continue;
      const Bytes unused = read_stat(folder / "memory.stat", files.unused_file_pages);
      bounds.push_back({"the control group " + (group.empty() ? "/" : group),
                        *limit - std::max(Bytes(0), *used - unused)});
    }
    if (group.empty()) return;
    group.resize(group.rfind('/'));
  }
}

void add_resource_limit(const char* name, int resource, std::optional<Bytes> used,
                        std::vector<MemoryBound>& bounds) {
  rlimit limit{};
  if (!used || ::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  if (limit.rlim_cur == RLIM_INFINITY) return;
  bounds.push_back({name, Bytes(static_cast<int64_t>(limit.rlim_cur)) - *used});
}

}  // namespace

std::optional<Bytes> peak_resident_memory() { return read_kib("/proc/self/status", "VmHWM:"); }

std::optional<Bytes> resident_memory() { return read_kib("/proc/self/status", "VmRSS:"); }

std::optional<Bytes> machine_memory() {
  const std::optional<Bytes> memory = read_kib("/proc/meminfo", "MemTotal:");
  if (!memory) return std::nullopt;
  return *memory + read_kib("/proc/meminfo", "SwapTotal:").value_or(Bytes(0));
}

std::optional<Bytes> available_memory() { return read_kib("/proc/meminfo", "MemAvailable:"); }

std::vector<MemoryBound> memory_bounds(const std::string& root) {
  std::vector<MemoryBound> bounds;
  if (const auto available = read_kib(root + "/proc/meminfo", "MemAvailable:")) {
    bounds.push_back({"MemAvailable", *available});
  }
  // Lines "NUMBER:CONTROLLERS:PATH"; version 2 has none of both.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group == "/" || !group.starts_with('/')) group.clear();
    if (controllers == ",,") {
      add_groups(root + "/sys/fs/cgroup", group, kVersion2, bounds);
    } else if (controllers.find(",memory,") != std::string::npos) {
      add_groups(root + "/sys/fs/cgroup/memory", group, kVersion1, bounds);
    }
  }
  const std::string status = root + "/proc/self/status";
  add_resource_limit("RLIMIT_AS", RLIMIT_AS, read_kib(status, "VmSize:"), bounds);
  add_resource_limit("RLIMIT_DATA", RLIMIT_DATA, read_kib(status, "VmData:"), bounds);
  return bounds;
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
