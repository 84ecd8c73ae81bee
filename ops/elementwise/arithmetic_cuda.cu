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
  set(kAdd, map_cuda<Add, float, float, float>);
  set(kSub, map_cuda<Sub, float, float, float>);
  set(kMul, map_cuda<Mul, float, float, float>);
  set(kDiv, map_cuda<Div, float, float, float>);
  set(kDivGrad, map_cuda<DivGrad, float, float, float, float>);
  set(kAddScaled, map_cuda<AddScaled, float, float, float>);
}

}  // namespace tidemark
