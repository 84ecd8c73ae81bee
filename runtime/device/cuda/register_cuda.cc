#include "runtime/device/cuda/register.h"

#include <charconv>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/gpu_profile.h"
#include "runtime/device/cuda/probe.h"

namespace tidemark {
namespace {

int gpu_of(const std::string& name) {
  if (name == "cuda") return 0;
  int gpu = -1;
  if (name.starts_with("cuda:")) {
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + 5, end, gpu);
    if (error == std::errc() && rest == end && gpu >= 0) return gpu;
  }
  throw UsageError("'" + name + "' names no GPU: cuda is the first, cuda:1 the second");
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(const std::string& name) {
  const int gpu = gpu_of(name);
  const std::shared_ptr<CudaDriver> driver = make_cuda_driver(gpu);
  const LinkProbe links = probe_links(*driver);
  return make_cuda_device_on(driver, "cuda:" + std::to_string(gpu),
                             gpu_profile(*driver, links));
}

bool built_with_cuda() { return true; }

}  // namespace tidemark
