// One block per row. The second read of the row comes from the cache.
#include "ops/loss/kernels.h"
#include "ops/loss/loss.h"
#include "ops/loss/rows_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

template <int kThreads, bool kLog>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(int64_t classes, const float* x, float* y) {
  const float* from = x + blockIdx.x * classes;
  float* to = y + blockIdx.x * classes;
  const RowMoments row = row_moments<kThreads>(from, classes);
  if constexpr (kLog) {
    const double shift = row.largest + log(row.sum);
    for (int64_t c = threadIdx.x; c < classes; c += kThreads) {
      to[c] = static_cast<float>(from[c] - shift);
    }
  } else {
    const float factor = static_cast<float>(1 / row.sum);
    for (int64_t c = threadIdx.x; c < classes; c += kThreads) {
      to[c] = expf(from[c] - row.largest) * factor;
    }
  }
}

// Softmax: dx = y (g - sum g y). Log-softmax: dx = g - e^y sum g.
template <int kThreads, bool kLog>
__global__ void __launch_bounds__(kThreads)
    softmax_grad_kernel(int64_t classes, const float* g, const float* y, float* dx) {
  const int64_t start = blockIdx.x * classes;
  double sum = 0;
  for (int64_t c = threadIdx.x; c < classes; c += kThreads) {
    sum += kLog ? double{g[start + c]} : double{g[start + c]} * y[start + c];
  }
  const float total = static_cast<float>(block_sum<kThreads>(sum));
  for (int64_t c = threadIdx.x; c < classes; c += kThreads) {
    const float gc = g[start + c], yc = y[start + c];
    dx[start + c] = kLog ? gc - expf(yc) * total : yc * (gc - total);
  }
}

template <bool kLog>
PreparedKernel prepare(const OpQuery& query) {
  const Shape& shape = query.inputs[0].shape;
  if (shape.elements() == 0) return {Bytes(0), [](const KernelArgs&) {}};
  return {Bytes(0), [classes = shape.back(),
                     rows = shape.elements() / shape.back()](const KernelArgs& args) {
            with_row_threads(classes, [&]<int kThreads>() {
              launch_blocks(args, rows, kThreads, softmax_kernel<kThreads, kLog>, classes,
                            args.in<float>(0), args.out<float>(0));
            });
          }};
}

template <bool kLog>
PreparedKernel prepare_grad(const OpQuery& query) {
  const Shape& shape = query.inputs[1].shape;
  if (shape.elements() == 0) return {Bytes(0), [](const KernelArgs&) {}};
  return {Bytes(0), [classes = shape.back(),
                     rows = shape.elements() / shape.back()](const KernelArgs& args) {
            with_row_threads(classes, [&]<int kThreads>() {
              launch_blocks(args, rows, kThreads, softmax_grad_kernel<kThreads, kLog>, classes,
                            args.in<float>(0), args.in<float>(1), args.out<float>(0));
            });
          }};
}

}  // namespace

void register_softmax_cuda() {
  set_kernel(kSoftmax, Backend::kCuda, prepare<false>);
  set_kernel(kSoftmaxGrad, Backend::kCuda, prepare_grad<false>);
  set_kernel(kLogSoftmax, Backend::kCuda, prepare<true>);
  set_kernel(kLogSoftmaxGrad, Backend::kCuda, prepare_grad<true>);
}

}  // namespace tidemark
