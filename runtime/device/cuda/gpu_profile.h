// The profile of a GPU that has not been measured: rates from the GPU's own properties, links
// from the probe, the rest as in the built-in profiles. Measured operator costs replace its
// rates during training.
#pragma once

#include <map>
#include <string>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/probe.h"
#include "runtime/device/profile.h"

namespace tidemark {

// Device memory reserved for the driver and the libraries: kernel code, handles, tables of
// cuDNN and cuBLAS. profile.memory is the memory now free, less this reserve.
inline constexpr Bytes kCudaReserve{768 << 20};

// Throws DeviceError.
DeviceProfile gpu_profile(CudaDriver& driver, const LinkProbe& links);

// "nvidia-h100-80gb-hbm3".
std::string profile_name_of(const std::string& gpu_name);

// As JSON for parse_profile(); `sources` gives the source of each number, by key.
std::string profile_json(const DeviceProfile& profile,
                         const std::map<std::string, std::string>& sources = {});

}  // namespace tidemark
