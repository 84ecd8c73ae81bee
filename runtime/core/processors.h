// How many processors this process may use, which is less than the machine has under taskset,
// in a container, or in a control group with a quota.
//
// Threads: any.
#pragma once

#include <filesystem>
#include <string>

namespace tidemark {

// Those in the calling thread's affinity mask.
int processors_allowed();

// At most as many as the CPU quota of the process's control groups keeps busy, rounded up.
int within_cpu_quota(int processors);

// The same for `groups`, what /proc/self/cgroup says, and control groups mounted below `mount`,
// usually /sys/fs/cgroup. Versions 1 and 2, and both at once.
int within_cpu_quota(int processors, const std::string& groups,
                     const std::filesystem::path& mount);

}  // namespace tidemark
