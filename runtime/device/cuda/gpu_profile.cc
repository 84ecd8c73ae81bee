#include "runtime/device/cuda/gpu_profile.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/stream_queue.h"

namespace tidemark {
namespace {

// Dense tensor-core operations of one multiprocessor per clock: rate / multiprocessors / boost
// clock, from NVIDIA's tuning guides and datasheets. GPUs without TF32 (below 8.0) have the
// rate of their plain cores for float32, and that of float16 for bfloat16.
struct Throughput {
  int capability;
  double float32;
  double bfloat16;
};
constexpr Throughput kThroughputs[] = {
    {60, 128, 256}, {61, 256, 256}, {70, 128, 1024},  {75, 128, 1024},   {80, 1024, 2048},
    {86, 256, 512}, {89, 256, 512}, {90, 2048, 4096}, {100, 4096, 8192}, {120, 256, 512},
};

Throughput throughput_of(int capability) {
  Throughput found = kThroughputs[0];
  for (const Throughput& entry : kThroughputs) {
    if (entry.capability <= capability) found = entry;
  }
  return found;
}

}  // namespace

std::string profile_name_of(const std::string& gpu_name) {
  std::string name;
  for (const char c : gpu_name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter)) {
      name += static_cast<char>(std::tolower(letter));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (name.ends_with('-')) name.pop_back();
  return name.empty() ? "gpu" : name;
}

DeviceProfile gpu_profile(CudaDriver& driver, const LinkProbe& links) {
  GpuProperties gpu;
  check_driver(driver, driver.properties(&gpu), "cudaGetDeviceProperties");
  Bytes free{0};
  Bytes total{0};
  check_driver(driver, driver.memory_info(&free, &total), "cudaMemGetInfo");

  DeviceProfile profile = load_profile("a100-80gb");  // its efficiencies and launch costs
  profile.name = profile_name_of(gpu.name);
  profile.description = gpu.name;
  profile.backend = Backend::kCuda;
  profile.memory = std::max(align_down(free - kCudaReserve), kAlignment);
  const double clocks = gpu.multiprocessors * gpu.clock_hz;
  const Throughput throughput = throughput_of(gpu.capability);
  if (clocks > 0) {
    profile.float32_flops = throughput.float32 * clocks;
    profile.bfloat16_flops = throughput.bfloat16 * clocks;
  }
  if (gpu.memory_clock_hz > 0 && gpu.memory_bus_bits > 0) {
    profile.memory_bandwidth = 2 * gpu.memory_clock_hz * gpu.memory_bus_bits / 8;
  }
  profile.offload_bandwidth = links.offload_bandwidth;
  profile.reload_bandwidth = links.reload_bandwidth;
  profile.duplex_offload_bandwidth = links.duplex_offload_bandwidth;
  profile.duplex_reload_bandwidth = links.duplex_reload_bandwidth;
  profile.pin_bandwidth = links.pin_bandwidth;
  profile.transfer_latency = links.transfer_latency;
  const DeviceProfile host = load_profile("host");
  profile.disk_write_bandwidth = host.disk_write_bandwidth;
  profile.disk_read_bandwidth = host.disk_read_bandwidth;
  return profile;
}

std::string profile_json(const DeviceProfile& profile,
                         const std::map<std::string, std::string>& sources) {
  nlohmann::ordered_json json;
  json["name"] = profile.name;
  json["description"] = profile.description;
  // The file stands for the GPU on machines without one, where operators state their
  // workspaces.
  json["backend"] = "model";
  json["memory_bytes"] = profile.memory.count();
  json["float32_flops"] = profile.float32_flops;
  json["bfloat16_flops"] = profile.bfloat16_flops;
  json["compute_efficiency"] = profile.compute_efficiency;
  json["memory_bandwidth"] = profile.memory_bandwidth;
  json["memory_efficiency"] = profile.memory_efficiency;
  json["offload_bandwidth"] = profile.offload_bandwidth;
  json["reload_bandwidth"] = profile.reload_bandwidth;
  json["duplex_offload_bandwidth"] = profile.duplex_offload_bandwidth;
  json["duplex_reload_bandwidth"] = profile.duplex_reload_bandwidth;
  json["pin_bandwidth"] = profile.pin_bandwidth;
  json["disk_write_bandwidth"] = profile.disk_write_bandwidth;
  json["disk_read_bandwidth"] = profile.disk_read_bandwidth;
  json["launch_cost_ns"] = profile.launch_cost.count();
  json["transfer_latency_ns"] = profile.transfer_latency.count();
  json["kernel_floor_ns"] = profile.kernel_floor.count();
  if (!sources.empty()) json["sources"] = sources;
  return json.dump(2) + "\n";
}

}  // namespace tidemark
