// A thread takes eight elements, whose signs are a byte.
#include <cstdint>

#include "ops/elementwise/functors.h"
#include "ops/elementwise/relu.h"
#include "ops/kernels/any_float.h"
#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/launch_cuda.cuh"
#include "ops/kernels/map_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

constexpr int kEach = kSignsPerByte;

// Calls use(pack, first) with packs of `x`'s elements, `first` the number of the pack's first
// element among the thread's; what use leaves in a pack goes to `y`. kWidth 4: x and y are
// aligned for vectors.
template <int kWidth, class Use>
__device__ void for_packs(int64_t begin, int64_t elements, const FloatInput& x,
                          const FloatOutput& y, const Use& use) {
  if (begin + kEach <= elements) {
    FloatPack<kWidth> packs[kEach / kWidth];  // all are read before the first is written
#pragma unroll
    for (int p = 0; p < kEach / kWidth; ++p) {
      packs[p] = load_pack<kWidth>(x + (begin + p * kWidth));
    }
#pragma unroll
    for (int p = 0; p < kEach / kWidth; ++p) {
      use(packs[p], p * kWidth);
      store_pack<kWidth>(y + (begin + p * kWidth), packs[p]);
    }
    return;
  }
  for (int first = 0; begin + first < elements; ++first) {
    auto pack = load_pack<1>(x + (begin + first));
    use(pack, first);
    store_pack<1>(y + (begin + first), pack);
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kLaunchThreads)
    relu_kernel(int64_t elements, int64_t threads, FloatInput x, FloatOutput y,
                uint8_t* signs) {
  const int64_t thread = thread_index();
  if (thread >= threads) return;
  unsigned bits = 0;
  for_packs<kWidth>(thread * kEach, elements, x, y, [&](auto& pack, int first) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(pack.v) / sizeof(float)); ++i) {
      bits |= static_cast<unsigned>(pack.v[i] > 0) << (first + i);
      pack.v[i] = Relu()(pack.v[i]);
    }
  });
  signs[thread] = static_cast<uint8_t>(bits);
}

template <int kWidth>
__global__ void __launch_bounds__(kLaunchThreads)
    relu_grad_kernel(int64_t elements, int64_t threads, FloatInput g, const uint8_t* signs,
                     FloatOutput dx) {
  const int64_t thread = thread_index();
  if (thread >= threads) return;
  const unsigned bits = signs[thread];
  for_packs<kWidth>(thread * kEach, elements, g, dx, [&](auto& pack, int first) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(pack.v) / sizeof(float)); ++i) {
      pack.v[i] = bits >> (first + i) & 1 ? pack.v[i] : 0.0f;
    }
  });
}

PreparedKernel prepare_forward(const OpQuery& query) {
  const int64_t elements = query.outputs[0].shape.elements(), threads = sign_bytes(elements);
  const auto kernel = vectors_fit(query) ? relu_kernel<4> : relu_kernel<1>;
  return {Bytes(0), [=](const KernelArgs& args) {
            launch(args, threads, kernel, elements, threads, float_input(args, 0),
                   float_output(args, 0), args.out<uint8_t>(1));
          }};
}

PreparedKernel prepare_backward(const OpQuery& query) {
  const int64_t elements = query.outputs[0].shape.elements(), threads = sign_bytes(elements);
  const auto kernel = vectors_fit(query) ? relu_grad_kernel<4> : relu_grad_kernel<1>;
  return {Bytes(0), [=](const KernelArgs& args) {
            launch(args, threads, kernel, elements, threads, float_input(args, 0),
                   args.in<uint8_t>(1), float_output(args, 0));
          }};
}

}  // namespace

void register_relu_cuda() {
  set_kernel(kRelu, Backend::kCuda, prepare_forward);
  set_kernel(kReluGrad, Backend::kCuda, prepare_backward);
  set_kernel(kReluGradByValues, Backend::kCuda, map_floats_cuda<ReluGrad, 2>);
}

}  // namespace tidemark
