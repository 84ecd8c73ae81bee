#include "ops/elementwise/gelu.h"
#include "ops/elementwise/gelu_functors.h"
#include "ops/kernels/device_math_cuda.cuh"
#include "ops/kernels/map_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

// Tensors with gaps are copied first.
constexpr unsigned kGeluWalks = kWalkFlat | kWalkElements;

PreparedKernel prepare_gelu(const OpQuery& query) {
  if (query.attr<GeluAttrs>().tanh) {
    return map_floats_cuda<GeluTanh<DeviceMath>, 1, kGeluWalks>(query);
  }
  return map_floats_cuda<GeluExact<DeviceMath>, 1, kGeluWalks>(query);
}

PreparedKernel prepare_gelu_grad(const OpQuery& query) {
  if (query.attr<GeluAttrs>().tanh) {
    return map_floats_cuda<GeluTanhGrad<DeviceMath>, 2, kGeluWalks>(query);
  }
  return map_floats_cuda<GeluExactGrad<DeviceMath>, 2, kGeluWalks>(query);
}

}  // namespace

void register_gelu_cuda() {
  set_kernel(kGelu, Backend::kCuda, prepare_gelu);
  set_kernel(kGeluGrad, Backend::kCuda, prepare_gelu_grad);
}

}  // namespace tidemark
