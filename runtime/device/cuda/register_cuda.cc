#include <map>
#include <mutex>

#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/gpu_profile.h"
#include "runtime/device/cuda/probe.h"
#include "runtime/device/cuda/register.h"
#include "runtime/device/cuda/stream_queue.h"

namespace tidemark {
namespace {

// Remembers the probe's result: dry runs ask often, and a probe is slow.
LinkProbe links_of(int gpu, CudaDriver& driver) {
  static std::mutex mutex;
  static auto& known = *new std::map<int, LinkProbe>;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(gpu);
  return found != known.end() ? found->second : known[gpu] = probe_links(driver);
}

DeviceProfile profile_of(int gpu, CudaDriver& driver) {
  check_driver(driver, driver.use(), "cudaSetDevice");
  return gpu_profile(driver, links_of(gpu, driver));
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(int gpu) {
  const std::shared_ptr<CudaDriver> driver = make_cuda_driver(gpu);
  return make_cuda_device_on(driver, "cuda:" + std::to_string(gpu), profile_of(gpu, *driver));
}

DeviceProfile cuda_profile(int gpu) { return profile_of(gpu, *make_cuda_driver(gpu)); }

bool built_with_cuda() { return true; }

}  // namespace tidemark
