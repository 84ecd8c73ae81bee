#include "runtime/core/errors.h"
#include "runtime/device/cuda/register.h"
#include "runtime/device/device.h"

namespace tidemark {

std::unique_ptr<Device> make_device(const std::string& name, const CpuOptions& options) {
  if (name == "cpu") return make_cpu_device(options);
  if (name.starts_with("sim:")) return make_sim_device(load_profile(name.substr(4)));
  if (name.starts_with("cuda")) return make_cuda_device(name);
  std::string there_is = "cpu, sim:FILE.json";
  if (built_with_cuda()) there_is += ", cuda[:N]";
  for (const std::string& profile : profile_names()) there_is += ", sim:" + profile;
  throw UsageError("there is no device '" + name + "'; there are " + there_is);
}

}  // namespace tidemark
