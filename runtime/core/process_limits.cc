#include "runtime/core/process_limits.h"

#include <sys/resource.h>

#include <fstream>
#include <limits>

namespace tidemark {

namespace fs = std::filesystem;

std::optional<int64_t> read_number(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  std::string word;
  while (!key.empty() && in >> word && word != key) {
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  int64_t number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

std::optional<Bytes> read_kib(const fs::path& file, const std::string& key) {
  const std::optional<int64_t> kib = read_number(file, key);
  if (!kib) return std::nullopt;
  return Bytes(*kib * 1024);
}

std::vector<ControlGroup> control_groups(const std::string& controller, const fs::path& root) {
  std::vector<ControlGroup> groups;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream lines(root / "proc/self/cgroup");  // NUMBER:CONTROLLERS:PATH
  for (std::string line; std::getline(lines, line);) {
    const size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = line.substr(controllers, path - 1 - controllers);
    fs::path mount;
    if (names.empty()) {  // version 2, which has a mount of its own beside version 1
      mount = fs::exists(mounts / "unified") ? mounts / "unified" : mounts;
    } else if (("," + names + ",").find("," + controller + ",") != std::string::npos) {
      mount = fs::exists(mounts / names) ? mounts / names : mounts / controller;
    } else {
      continue;
    }
    fs::path group = fs::path(line.substr(path)).lexically_normal().relative_path();
    for (; !group.empty(); group = group.parent_path()) {
      groups.push_back({"/" + group.string(), mount / group});
    }
    groups.push_back({"/", mount});
  }
  return groups;
}

std::optional<Bytes> resource_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return Bytes(static_cast<int64_t>(limit.rlim_cur));
}

std::vector<ProcessLimit> process_limits(const fs::path& root) {
  std::vector<ProcessLimit> limits;
  const auto add = [&](int resource, ProcessLimit limit, const char* taken) {
    const std::optional<Bytes> set = resource_limit(resource);
    const std::optional<Bytes> now = read_kib(root / "proc/self/status", taken);
    if (!set || !now) return;
    limit.limit = *set;
    limit.taken = *now;
    limits.push_back(limit);
  };
  add(RLIMIT_AS, {"RLIMIT_AS", "-v", "address space"}, "VmSize:");
  add(RLIMIT_DATA, {"RLIMIT_DATA", "-d", "private memory"}, "VmData:");
  return limits;
}

}  // namespace tidemark
