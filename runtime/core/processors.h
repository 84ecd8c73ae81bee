// The number of processors that this process may use (less than the machine's under taskset, in
// a container, or in a control group with a quota), and thread priority.
//
// Threads: any.
#pragma once

#include <filesystem>

namespace tidemark {

// The number in the calling thread's affinity mask.
int processors_allowed();

// `processors`, limited to the CPU quota of the process's control groups (versions 1 and 2),
// rounded up. `root`: the folder with /proc and /sys, for tests.
int within_cpu_quota(int processors, const std::filesystem::path& root = "/");

// From now on the calling thread, and threads that it starts, have about a tenth of a processor
// that another thread of this process keeps busy, and all of one that is idle: a nice value of
// 10 more, at most 19. Permanent, except for privileged processes.
void let_others_go_first() noexcept;

}  // namespace tidemark
