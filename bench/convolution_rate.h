// The rate that convolutions reach on a device; a profile's compute_efficiency stands for it.
//
// Threads: the calling thread; leaves its current session unchanged.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark {

// Floating-point operations per second over the convolutions of ResNet-50's bottlenecks,
// forward and both gradients, at `batch` images of 224x224. Each counts with the fastest of a
// few runs, as timed by the device. Throws the exceptions of sessions.
double convolution_rate(const std::string& device, int64_t batch);

}  // namespace tidemark
