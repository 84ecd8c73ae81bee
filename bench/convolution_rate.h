// What convolutions reach on a device: the rate that a profile's compute_efficiency stands for.
//
// Threads: the calling thread; its current session is the same afterwards.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark {

// Floating-point operations per second over the convolutions of ResNet-50's bottlenecks,
// forward and both gradients, at `batch` images of 224x224; of each the fastest of a few runs,
// as the device timed it. Throws what sessions throw.
double convolution_rate(const std::string& device, int64_t batch);

}  // namespace tidemark
