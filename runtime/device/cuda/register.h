// The implementation of make_device("cuda:N"): a GPU in builds with CUDA (register_cuda.cc), an
// error in others (register_none.cc). The build uses one of the two files.
#pragma once

#include <memory>
#include <string>

#include "runtime/device/device.h"

namespace tidemark {

// GPU number `gpu`. Throws NoGpuError if no GPU can be used or this build has no CUDA;
// UsageError if there is no GPU of that number; DeviceError if it fails.
std::unique_ptr<Device> make_cuda_device(int gpu);

// The profile of a GPU without making a device: its own properties, and its links as probed
// once per process, which takes a fraction of a second. Makes the GPU current on this thread,
// for kernels that are prepared but not run. Throws as above.
DeviceProfile cuda_profile(int gpu);

// Whether this build supports CUDA devices.
bool built_with_cuda();

}  // namespace tidemark
