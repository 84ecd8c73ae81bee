#include "ops/autograd/accumulate.h"
#include "ops/kernels/map_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

struct Sum {
  TIDEMARK_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};

}  // namespace

void register_accumulate_cuda() {
  set_kernel(kAccumulate, Backend::kCuda, map_floats_cuda<Sum, 2>);
}

}  // namespace tidemark
