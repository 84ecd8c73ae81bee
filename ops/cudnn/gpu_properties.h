// GPUs by their properties, for which cuDNN makes plans on any machine.
#pragma once

#include <string>

#include "ops/cudnn/backend.h"

namespace tidemark::cudnn {

struct Gpu {
  const char* name;
  int capability, multiprocessors, shared_memory, l2_mib;
};
inline constexpr Gpu kA100{"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 40};
inline constexpr Gpu kH100{"NVIDIA H100 80GB HBM3", 900, 132, 232448, 50};

inline Descriptor properties(const Gpu& gpu) {
  return device_properties(
      R"({"cudaDeviceId":0,"driverVer":13000,"isTccDriver":0,"maxCtasPerSM":32,)"
      R"("maxRegistersPerSM":65536,"maxSharedMemoryPerBlock":49152,"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":2048,"memClockRateKHz":2000000,"pciDeviceId":0,"regsPerBlock":65536,)"
      R"("reservedSharedMemoryPerBlock":1024,"smClockRateKHz":1500000,"supportCoopLaunch":1,)"
      R"("totalGlobalMem":85017493504,"warpSize":32,"maxBlockSize":[1024,1024,64],)"
      R"("maxGridSize":[2147483647,65535,65535],"deviceName":")" +
      std::string(gpu.name) + R"(","deviceVer":)" + std::to_string(gpu.capability) +
      R"(,"multiProcessorCount":)" + std::to_string(gpu.multiprocessors) +
      R"(,"maxSharedMemoryPerBlockOptin":)" + std::to_string(gpu.shared_memory) +
      R"(,"l2CacheSize":)" + std::to_string(gpu.l2_mib << 20) + "}");
}

}  // namespace tidemark::cudnn
