#include "runtime/device/cuda/register.h"

namespace tidemark {
namespace {

[[noreturn]] void no_cuda() {
  throw NoGpuError(
      "no CUDA device can be used: this build has no CUDA support (configure with "
      "-DTIDEMARK_CUDA=ON)");
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(int /*gpu*/) { no_cuda(); }
DeviceProfile cuda_profile(int /*gpu*/) { no_cuda(); }
bool built_with_cuda() { return false; }

}  // namespace tidemark
