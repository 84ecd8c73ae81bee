// What the operating system says that this process takes.
#pragma once

#include <optional>

#include "runtime/core/units.h"

namespace tidemark {

// What a program takes at most beside arena, host tier and loader: its code and libraries, the
// kernels that oneDNN generates, thread stacks, staging of the disk tier. 40 to 100 MiB were
// measured with ResNet on 2 threads; stacks of many threads and a CUDA build's libraries need
// more. Memory that the process takes is at most budget + host limit + loading + this.
inline constexpr Bytes kProgramMemory{int64_t{192} << 20};

// Most resident memory at once so far (VmHWM), and what is resident now (VmRSS). None where the
// system does not say.
std::optional<Bytes> peak_resident_memory();
std::optional<Bytes> resident_memory();
// What the machine could still give out without swapping (MemAvailable).
std::optional<Bytes> available_memory();
// All that the machine has, swap space included.
std::optional<Bytes> machine_memory();

}  // namespace tidemark
