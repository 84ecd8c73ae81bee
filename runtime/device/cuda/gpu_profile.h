// The profile of a GPU that nobody has measured yet: rates from what the GPU says of itself,
// links from the probe, the rest as in the built-in profiles. Measured operator costs take its
// place as training goes on.
#pragma once

#include <map>
#include <string>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/probe.h"
#include "runtime/device/profile.h"

namespace tidemark {

// Device memory that is left to the driver and the libraries: kernels' code, handles, cuDNN's
// and cuBLAS's own tables. profile.memory is what is free now, less this.
inline constexpr Bytes kCudaReserve{768 << 20};

// Throws DeviceError.
DeviceProfile gpu_profile(CudaDriver& driver, const LinkProbe& links);

// "nvidia-h100-80gb-hbm3".
std::string profile_name_of(const std::string& gpu_name);

// As JSON that parse_profile() reads; `sources` says by key where numbers come from.
std::string profile_json(const DeviceProfile& profile,
                         const std::map<std::string, std::string>& sources = {});

}  // namespace tidemark
