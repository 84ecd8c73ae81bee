// Measures the link between host and GPU, each direction alone and both at once, and the cost
// of pinning host memory, in well under a second when a device is made.
//
// Threads: the issuing thread, before the device is made.
#pragma once

#include "runtime/core/units.h"
#include "runtime/device/cuda/driver.h"

namespace tidemark {

struct LinkProbe {
  double offload_bandwidth = 0;         // device to host, bytes per second, alone
  double reload_bandwidth = 0;          // host to device
  double duplex_offload_bandwidth = 0;  // while the other direction is busy
  double duplex_reload_bandwidth = 0;
  Nanos transfer_latency{0};  // of a copy of a few bytes, from start to end on the stream
  double pin_bandwidth = 0;   // bytes of host memory pinned per second, pages touched first
};

// Temporarily uses two buffers of `bytes` on the GPU and on the host. Rates are the best of a
// few runs, because other runs were disturbed. Throws DeviceError.
inline constexpr Bytes kProbeBytes{32 << 20};
LinkProbe probe_links(CudaDriver& driver, Bytes bytes = kProbeBytes);

}  // namespace tidemark
