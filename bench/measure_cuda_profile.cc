// Measures this machine's GPU and prints a device profile for the simulator.
//
//   measure_cuda_profile [NAME [cuda:N]] > mine.json
//   train_resnet --device sim:mine.json ...
//
// Takes half a minute; run it alone. It measures the links, memory bandwidth, the speed of
// convolutions, the launch cost and the shortest kernel. The disk is not measured, and the
// profile says so.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "bench/convolution_rate.h"
#include "bench/run_main.h"
#include "runtime/core/errors.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/gpu_profile.h"
#include "runtime/device/cuda/probe.h"
#include "runtime/device/cuda/register.h"
#include "runtime/device/device.h"

namespace tidemark {
namespace {

using namespace tidemark::literals;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Seconds of each of `count` copies within device memory.
std::vector<double> copy_seconds(Device& device, Bytes bytes, int count) {
  const auto from = device.map(MemoryKind::kDevice, bytes);
  const auto to = device.map(MemoryKind::kDevice, bytes);
  auto issue = [&](uint64_t tag) {
    device.copy(StreamId::kCompute, {to->data(), from->data(), bytes, tag});
  };
  for (int i = 0; i < 5; ++i) issue(0);
  for (int i = 0; i < count; ++i) issue(static_cast<uint64_t>(i) + 1);
  device.synchronize_all();
  std::vector<double> seconds;
  for (const Completion& done : device.take_completions()) {
    seconds.push_back(to_seconds(done.end - done.start));
  }
  return seconds;
}

// Seconds of the issuing thread per small copy: the least that launching an operator costs.
double launch_seconds(Device& device) {
  const auto memory = device.map(MemoryKind::kDevice, 8_KiB);
  std::vector<double> seconds;
  for (int round = 0; round < 20; ++round) {
    constexpr int kCopies = 200;
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t tag = 1; tag <= kCopies; ++tag) {
      device.copy(StreamId::kCompute, {memory->data(), memory->data() + 4096, 4_KiB, tag});
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    seconds.push_back(taken.count() / kCopies);
    device.synchronize_all();
    device.take_completions();
  }
  return median(seconds);
}

int run(int argc, char** argv) {
  if (const auto code =
          explain_usage(argc, argv, argc > 3 || (argc > 1 && argv[1][0] == '-'),
                        "measure_cuda_profile [NAME [cuda:N]] > mine.json\n\nMeasures a GPU: a "
                        "device profile for --device sim:mine.json.")) {
    return *code;
  }
  const std::string name = argc > 2 ? argv[2] : "cuda";
  constexpr int64_t kBatch = 64;
  const double rate = convolution_rate(name, kBatch);  // first, as it takes most of the memory
  const auto device = make_device(name);
  const int gpu = std::stoi(device->name().substr(5));
  const auto driver = make_cuda_driver(gpu);
  GpuProperties properties;
  if (!driver->properties(&properties).ok())
    throw DeviceError("cannot read the GPU's properties");

  const LinkProbe links = probe_links(*driver, 256_MiB);
  DeviceProfile profile = gpu_profile(*driver, links);
  if (argc > 1) profile.name = argv[1];
  profile.memory = properties.memory;
  const Bytes large = std::min(1_GiB, align_down(Bytes(properties.memory.count() / 16)));
  const double seconds = median(copy_seconds(*device, large, 20));
  const double moved = 2 * static_cast<double>(large.count()) / seconds;
  const double peak = profile.memory_bandwidth;
  profile.memory_efficiency = std::min(1.0, moved / peak);
  profile.compute_efficiency = std::min(1.0, rate / profile.float32_flops);
  profile.kernel_floor =
      Nanos(static_cast<int64_t>(median(copy_seconds(*device, 4_KiB, 200)) * 1e9));
  profile.launch_cost = Nanos(static_cast<int64_t>(launch_seconds(*device) * 1e9));

  const std::string probe = "measured: probe, 256 MiB, best of 3";
  std::cout << profile_json(
      profile,
      {{"memory_bytes", "the GPU's total, as it reports it"},
       {"float32_flops", "computed: multiprocessors x clock x TF32 operations per clock"},
       {"bfloat16_flops", "computed: multiprocessors x clock x bf16 operations per clock"},
       {"compute_efficiency",
        "measured: convolutions of ResNet-50's bottlenecks and their gradients, batch 64, of "
        "float32_flops"},
       {"memory_bandwidth", "computed: 2 x memory clock x bus width"},
       {"memory_efficiency", "measured: median of 20 copies within device memory"},
       {"offload_bandwidth", probe},
       {"reload_bandwidth", probe},
       {"duplex_offload_bandwidth", probe + ", both ways"},
       {"duplex_reload_bandwidth", probe + ", both ways"},
       {"pin_bandwidth",
        "measured: cudaHostRegister of 256 MiB, pages touched first; best of 2"},
       {"disk_write_bandwidth", "not measured: as of host"},
       {"disk_read_bandwidth", "not measured: as of host"},
       {"launch_cost_ns",
        "measured: issuing thread, per timed 4 KiB copy within device memory"},
       {"transfer_latency_ns", "measured: 16 bytes to the host, between events"},
       {"kernel_floor_ns", "measured: 4 KiB copy within device memory, between events"}});
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  return tidemark::run_main("measure_cuda_profile", tidemark::run, argc, argv, 2);
}
