// How many processors this process may use, which is less than the machine has under taskset,
// in a container, or in a control group with a quota.
//
// Threads: any.
#pragma once

#include <filesystem>

namespace tidemark {

// Those in the calling thread's affinity mask.
int processors_allowed();

// At most as many as the CPU quota of the process's control groups (versions 1 and 2) keeps
// busy, rounded up. `root`: where /proc and /sys are looked for, for tests.
int within_cpu_quota(int processors, const std::filesystem::path& root = "/");

}  // namespace tidemark
