// What the operating system says that this process takes, and may take.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark {

// What a program takes at most beside arena, host tier and loader: its code and libraries, the
// kernels that oneDNN generates, thread stacks, staging of the disk tier. 40 to 100 MiB were
// measured with ResNet on 2 threads; stacks of many threads and a CUDA build's libraries need
// more. Memory that the process takes is at most budget + host limit + loading + this.
inline constexpr Bytes kProgramMemory{int64_t{192} << 20};

// The same where nothing is released or planned, beside a stack for each thread: 18 to 31 MiB
// were measured with networks from 1 to 124 million parameters, loading, saving and checkpoints
// included, to which the event log adds 8 in a long run. Twice that is left, and no less than
// kUntouchedGrowth beside what the process has after the dry run's first steps, which is 12 to
// 13 MiB more than then in those runs.
inline constexpr Bytes kUntouchedProgram{int64_t{64} << 20};
inline constexpr Bytes kUntouchedGrowth{int64_t{24} << 20};
inline constexpr Bytes kThreadMemory{int64_t{1} << 20};

// Most resident memory at once so far (VmHWM), and what is resident now (VmRSS). None where the
// system does not say.
std::optional<Bytes> peak_resident_memory();
std::optional<Bytes> resident_memory();
// What the machine could still give out without swapping (MemAvailable).
std::optional<Bytes> available_memory();
// Now, without pages of files (RssAnon).
std::optional<Bytes> anonymous_memory();

// Something that bounds this process's memory, and how much it leaves.
struct MemoryBound {
  std::string what;  // "MemAvailable", "the control group /a/b", "RLIMIT_DATA"
  Bytes left{0};     // may be negative, where more is in use than is allowed
};
// Of the machine, of the control groups (versions 1 and 2) that this process is in and of those
// above them, and of RLIMIT_AS and RLIMIT_DATA. What a control group has of file pages that are
// not in use counts as left. `root`: where /proc and /sys are looked for, for tests.
std::vector<MemoryBound> memory_bounds(const std::filesystem::path& root = "/");

// What has least memory in all for this process, others in it left aside: the machine, or a
// control group that it is in, swap space included. The kernel ends a process that takes more.
// None where the system does not say.
struct MemoryCeiling {
  std::string what;  // "this machine", "the control group /a/b"
  Bytes memory{0};
};
std::optional<MemoryCeiling> memory_ceiling(const std::filesystem::path& root = "/");

// What --memory auto stands for: what the process has plus what the tightest bound leaves, less
// a sixteenth of that and at least kLeastMargin, as others may take some meanwhile.
inline constexpr Bytes kLeastMargin{int64_t{64} << 20};
struct AutoMemory {
  Bytes memory{0};
  Bytes margin{0};
  std::string bound;  // the tightest one's name
};
// None if there is no bound.
std::optional<AutoMemory> auto_memory(Bytes resident, const std::vector<MemoryBound>& bounds);

}  // namespace tidemark
