#include "runtime/core/errors.h"
#include "runtime/device/cuda/register.h"

namespace tidemark {

std::unique_ptr<Device> make_cuda_device(const std::string& name) {
  throw UsageError("there is no device '" + name +
                   "': this build has no CUDA device (configure with -DTIDEMARK_CUDA=ON)");
}

bool built_with_cuda() { return false; }

}  // namespace tidemark
