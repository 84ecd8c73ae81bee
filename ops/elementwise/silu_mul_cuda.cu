#include "ops/elementwise/functors.h"
#include "ops/elementwise/silu_mul.h"
#include "ops/kernels/device_math_cuda.cuh"
#include "ops/kernels/map_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

// Tensors with gaps are copied first.
constexpr unsigned kSiluMulWalks = kWalkFlat | kWalkElements;

PreparedKernel prepare_silu_mul_grad(const OpQuery& query) {
  const TensorMeta& gradient = query.outputs[0];
  const PackedLoop loop =
      pack(make_loop(gradient.shape, {&gradient, &query.outputs[1], &query.inputs[0],
                                      &query.inputs[1], &query.inputs[2]}),
           {gradient, query.outputs[1], query.inputs[0], query.inputs[1], query.inputs[2]});
  return visit_float(gradient.dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [loop](const KernelArgs& args) {
              apply_cuda<kSiluMulWalks>(
                  loop, args, SiluMulGrad<DeviceMath>(), Writes<T>{args.out<T>(0)},
                  Writes<T>{args.out<T>(1)}, Reads<const T>{args.in<T>(0)},
                  Reads<const T>{args.in<T>(1)}, Reads<const T>{args.in<T>(2)});
            }};
  });
}

}  // namespace

void register_silu_mul_cuda() {
  set_kernel(kSiluMul, Backend::kCuda, map_floats_cuda<SiluMul<DeviceMath>, 2, kSiluMulWalks>);
  set_kernel(kSiluMulGrad, Backend::kCuda, prepare_silu_mul_grad);
}

}  // namespace tidemark
