#include "runtime/core/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <thread>

namespace tidemark {
namespace {

namespace fs = std::filesystem;

std::string word_at(const fs::path& path, int which) {
  std::ifstream file(path);
  std::string word;
  for (int i = 0; i <= which; ++i) file >> word;
  return file ? word : "";
}

// The quota of one group over its period; neither is a number where there is none ("max", -1).
int limited(int processors, const std::string& quota, const std::string& period) {
  double time = 0, each = 0;
  if (!(std::istringstream(quota) >> time) || !(std::istringstream(period) >> each)) {
    return processors;
  }
  if (time <= 0 || each <= 0) return processors;
  return static_cast<int>(std::min<double>(processors, std::ceil(time / each)));
}

// A group, and those that it lies in up to the mount. In a container the mount is the group
// itself, and the path that /proc gives may be one of the host's.
int limited_by(int processors, const fs::path& mount, const fs::path& group) {
  if (!fs::exists(mount)) return processors;
  fs::path part = group.relative_path();
  while (true) {
    const fs::path folder = mount / part;
    const fs::path v2 = folder / "cpu.max", v1 = folder / "cpu.cfs_quota_us";
    processors = limited(processors, word_at(v2, 0), word_at(v2, 1));
    processors = limited(processors, word_at(v1, 0), word_at(folder / "cpu.cfs_period_us", 0));
    if (part.empty()) return processors;
    part = part.parent_path();
  }
}

}  // namespace

int processors_allowed() {
  cpu_set_t allowed;
  // Fails where the machine has more than CPU_SETSIZE processors.
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int within_cpu_quota(int processors, const std::string& groups, const fs::path& mount) {
  std::istringstream lines(groups);  // number:controllers:path
  for (std::string line; std::getline(lines, line);) {
    const size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = "," + line.substr(controllers, path - 1 - controllers) + ",";
    const fs::path group = line.substr(path);
    if (names == ",,") {  // version 2
      for (const char* where : {"", "unified"}) {
        processors = limited_by(processors, mount / where, group);
      }
    } else if (names.find(",cpu,") != std::string::npos) {
      for (const char* where : {"cpu", "cpu,cpuacct"}) {
        processors = limited_by(processors, mount / where, group);
      }
    }
  }
  return std::max(1, processors);
}

int within_cpu_quota(int processors) {
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream groups;
  groups << file.rdbuf();
  return within_cpu_quota(processors, groups.str(), "/sys/fs/cgroup");
}

}  // namespace tidemark
