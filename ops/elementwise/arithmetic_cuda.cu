#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/functors.h"
#include "ops/kernels/map_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {

void register_arithmetic_cuda() {
  const auto set = [](const OpDef& op, PrepareKernel prepare) {
    set_kernel(op, Backend::kCuda, prepare);
  };
  set(kAdd, map_floats_cuda<Add, 2>);
  set(kSub, map_floats_cuda<Sub, 2>);
  set(kMul, map_floats_cuda<Mul, 2>);
  set(kDiv, map_cuda<Div, float, float, float>);
  set(kDivGrad, map_cuda<DivGrad, float, float, float, float>);
  set(kAddScaled, map_floats_cuda<AddScaled, 2>);
}

}  // namespace tidemark
