#include <charconv>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/register.h"
#include "runtime/device/device.h"

namespace tidemark {
namespace {

// The number of a GPU, from "cuda" or "cuda:1".
int gpu_of(const std::string& name) {
  if (name == "cuda") return 0;
  int gpu = -1;
  if (name.starts_with("cuda:")) {
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + 5, end, gpu);
    if (error == std::errc() && rest == end && gpu >= 0) return gpu;
  }
  throw UsageError("'" + name +
                   "' is not a GPU; write cuda for the first, cuda:1 for the second");
}

[[noreturn]] void no_such_device(const std::string& name) {
  std::string there_is = "cpu, sim:FILE.json";
  if (built_with_cuda()) there_is += ", cuda[:N], sim:cuda[:N]";
  for (const std::string& profile : profile_names()) there_is += ", sim:" + profile;
  throw UsageError("unknown device '" + name + "'; available: " + there_is);
}

}  // namespace

std::unique_ptr<Device> make_device(const std::string& name, const CpuOptions& options) {
  if (name == "cpu") return make_cpu_device(options);
  if (name.starts_with("sim:")) return make_sim_device(device_profile(name));
  if (name.starts_with("cuda")) return make_cuda_device(gpu_of(name));
  no_such_device(name);
}

DeviceProfile device_profile(const std::string& name) {
  if (name == "cpu") return load_profile("host");
  if (name.starts_with("sim:cuda")) return cuda_profile(gpu_of(name.substr(4)));
  if (name.starts_with("sim:")) return load_profile(name.substr(4));
  if (name.starts_with("cuda")) return cuda_profile(gpu_of(name));
  no_such_device(name);
}

}  // namespace tidemark
