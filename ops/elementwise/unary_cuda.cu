#include "ops/elementwise/functors.h"
#include "ops/elementwise/unary.h"
#include "ops/kernels/map_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

struct DeviceMath {
  static __device__ float logistic(float x) { return 1 / (1 + expf(-x)); }
};

}  // namespace

void register_unary_cuda() {
  const auto set = [](const OpDef& op, PrepareKernel prepare) {
    set_kernel(op, Backend::kCuda, prepare);
  };
  set(kScale, map_cuda<Scale, float, float>);
  set(kNeg, map_cuda<Neg, float, float>);
  set(kAbs, map_cuda<Abs, float, float>);
  set(kAbsGrad, map_cuda<AbsGrad, float, float, float>);
  set(kRelu, map_cuda<Relu, float, float>);
  set(kReluGrad, map_cuda<ReluGrad, float, float, float>);
  set(kExp, map_cuda<Exp, float, float>);
  set(kLog, map_cuda<Log, float, float>);
  set(kSqrt, map_cuda<Sqrt, float, float>);
  set(kSqrtGrad, map_cuda<SqrtGrad, float, float, float>);
  set(kTanh, map_cuda<Tanh, float, float>);
  set(kTanhGrad, map_cuda<TanhGrad, float, float, float>);
  set(kSigmoid, map_cuda<Sigmoid, float, float>);
  set(kSigmoidGrad, map_cuda<SigmoidGrad, float, float, float>);
  set(kRelu6, map_cuda<Relu6, float, float>);
  set(kRelu6Grad, map_cuda<Relu6Grad, float, float, float>);
  set(kSilu, map_cuda<Silu<DeviceMath>, float, float>);
  set(kSiluGrad, map_cuda<SiluGrad<DeviceMath>, float, float, float>);
}

}  // namespace tidemark
