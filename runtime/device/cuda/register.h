// Where make_device("cuda:N") leads: to a GPU in builds with CUDA (register_cuda.cc), to an
// error that says so in others (register_none.cc). The build takes one of the two files.
#pragma once

#include <memory>
#include <string>

#include "runtime/device/device.h"

namespace tidemark {

// GPU number `gpu`. Throws NoGpuError where no GPU can be used, or this build has no CUDA;
// UsageError if there is none of that number; DeviceError if it fails.
std::unique_ptr<Device> make_cuda_device(int gpu);

// What is known of it without making a device: what it says of itself, and the links as probed,
// once for the process, which takes a fraction of a second. Makes the GPU current on this
// thread, for kernels that are prepared and not run. Throws as above.
DeviceProfile cuda_profile(int gpu);

// Whether this build can have a CUDA device at all.
bool built_with_cuda();

}  // namespace tidemark
