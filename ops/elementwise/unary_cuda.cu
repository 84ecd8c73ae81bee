#include "ops/elementwise/functors.h"
#include "ops/elementwise/unary.h"
#include "ops/kernels/device_math_cuda.cuh"
#include "ops/kernels/map_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {

void register_unary_cuda() {
  const auto set = [](const OpDef& op, PrepareKernel prepare) {
    set_kernel(op, Backend::kCuda, prepare);
  };
  set(kScale, map_floats_cuda<Scale, 1>);
  set(kNeg, map_floats_cuda<Neg, 1>);
  set(kAbs, map_cuda<Abs, float, float>);
  set(kAbsGrad, map_cuda<AbsGrad, float, float, float>);
  set(kExp, map_cuda<Exp, float, float>);
  set(kLog, map_cuda<Log, float, float>);
  set(kSqrt, map_cuda<Sqrt, float, float>);
  set(kSqrtGrad, map_cuda<SqrtGrad, float, float, float>);
  set(kTanh, map_floats_cuda<Tanh, 1>);
  set(kTanhGrad, map_floats_cuda<TanhGrad, 2>);
  set(kSigmoid, map_floats_cuda<Sigmoid, 1>);
  set(kSigmoidGrad, map_floats_cuda<SigmoidGrad, 2>);
  set(kRelu6, map_floats_cuda<Relu6, 1>);
  set(kRelu6Grad, map_floats_cuda<Relu6Grad, 2>);
  set(kSilu, map_floats_cuda<Silu<DeviceMath>, 1>);
  set(kSiluGrad, map_floats_cuda<SiluGrad<DeviceMath>, 2>);
}

}  // namespace tidemark
