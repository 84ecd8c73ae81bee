// A device's performance: the rates that price work before it has been timed and that drive the
// simulator. Profiles are JSON files in data/profiles/ (format: its README), one per machine,
// each number with its source. They are compiled in, so a program needs no files to run.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/units.h"

namespace tidemark {

// Whose kernels, and therefore whose workspaces, are used. kModel: workspaces as stated by the
// operators.
enum class Backend : uint8_t { kCpu, kCuda, kModel };
inline constexpr size_t kBackendCount = 3;

struct DeviceProfile {
  std::string name;         // "a100-80gb"
  std::string description;  // "NVIDIA A100 SXM 80 GB"
  Backend backend = Backend::kModel;
  Bytes memory{0};                // all of the device's memory
  double float32_flops = 0;       // per second, the best of matrix products and convolutions
  double bfloat16_flops = 0;      // the same with bf16 inputs
  double compute_efficiency = 1;  // share of the peak that real convolutions reach
  double memory_bandwidth = 0;    // bytes per second, read + written
  double memory_efficiency = 1;   // share of it that elementwise kernels reach
  double offload_bandwidth = 0;   // device to host, bytes per second, alone
  double reload_bandwidth = 0;    // host to device, alone
  double duplex_offload_bandwidth = 0;  // device to host while the other direction is busy
  double duplex_reload_bandwidth = 0;
  // Bytes of host memory pinned per second of the issuing thread's time; 0: pinning costs
  // nothing.
  double pin_bandwidth = 0;
  double disk_write_bandwidth = 0;
  double disk_read_bandwidth = 0;
  Nanos launch_cost{0};       // of the issuing thread, per operator
  Nanos transfer_latency{0};  // per copy
  Nanos kernel_floor{0};      // minimum duration of a kernel
};

// A built-in profile by name, or a file if `name` ends in ".json". Throws UsageError, which
// lists the names, or DataError if the file is not a profile.
DeviceProfile load_profile(const std::string& name);
std::vector<std::string> profile_names();

// Throws DataError (with `source` as the file) on malformed JSON, unknown or missing keys.
DeviceProfile parse_profile(const std::string& json, const std::string& source);

}  // namespace tidemark
