// How many processors this process may use, which is less than the machine has under taskset,
// in a container, or in a control group with a quota; and who goes first where they are busy.
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

// From now on the calling thread takes what time other threads leave a processor idle, and next
// to none where they leave none. For ever, but for privileged processes.
void let_others_go_first() noexcept;

}  // namespace tidemark
