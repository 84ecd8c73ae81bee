#include "ops/kernels/any_float.h"
#include "ops/kernels/block_cuda.cuh"
#include "ops/kernels/strided.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/rows.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

using reduce::Rows;

struct Candidate {
  float value;
  int64_t index;  // past the end: none
};

// NaN counts as the largest; of equal values, the first wins.
struct Better {
  __device__ Candidate operator()(const Candidate& a, const Candidate& b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (!a_nan && a.value != b.value) return a.value > b.value ? a : b;
    return a.index <= b.index ? a : b;
  }
};

// The best candidate of this block's row, for all of its threads.
template <int kThreads>
__device__ Candidate best_of_row(const Rows& rows, const FloatInput& x) {
  const FloatInput from = x + rows.loop.offset(0, blockIdx.x);
  Candidate best{-INFINITY, rows.length};
  for (int64_t i = threadIdx.x; i < rows.length; i += kThreads) {
    best = Better()(best, {from[i * rows.step], i});
  }
  return block_reduce<kThreads>(best, Better());
}

// `values` may be null.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    max_kernel(const __grid_constant__ Rows rows, FloatInput x, float* values,
               int64_t* indices) {
  const Candidate best = best_of_row<kThreads>(rows, x);
  if (threadIdx.x > 0) return;
  indices[blockIdx.x] = best.index;
  if (values) values[blockIdx.x] = best.value;
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    accuracy_kernel(const __grid_constant__ Rows rows, FloatInput logits, const int64_t* labels,
                    int64_t label_step, unsigned long long* count) {
  const Candidate best = best_of_row<kThreads>(rows, logits);
  // Integers: the order of additions does not matter.
  if (threadIdx.x == 0 && best.index == labels[blockIdx.x * label_step]) atomicAdd(count, 1ull);
}

// Operands of the loop: g, indices.
__global__ void max_grad_kernel(const __grid_constant__ StridedLoop loop, int64_t length,
                                const float* g, const int64_t* indices, float* dx) {
  const int64_t i = thread_index();
  if (i >= loop.elements * length) return;
  const int64_t row = i / length;
  dx[i] = indices[loop.offset(1, row)] == i - row * length ? g[loop.offset(0, row)] : 0;
}

PreparedKernel prepare_max(const OpQuery& query, bool with_values) {
  return {Bytes(0), [rows = Rows(query.inputs[0]), with_values](const KernelArgs& args) {
            float* values = with_values ? args.out<float>(0) : nullptr;
            int64_t* indices = args.out<int64_t>(with_values ? 1 : 0);
            with_row_threads(rows.length, [&]<int kThreads>() {
              launch_blocks(args, rows.count(), kThreads, max_kernel<kThreads>, rows,
                            float_input(args, 0), values, indices);
            });
          }};
}

PreparedKernel prepare_max_grad(const OpQuery& query) {
  const StridedLoop loop =
      make_loop(query.inputs[1].shape, {&query.inputs[0], &query.inputs[1]});
  return {Bytes(0), [loop, length = query.outputs[0].shape.back()](const KernelArgs& args) {
            launch(args, loop.elements * length, max_grad_kernel, loop, length,
                   args.in<float>(0), args.in<int64_t>(1), args.out<float>(0));
          }};
}

PreparedKernel prepare_accuracy_count(const OpQuery& query) {
  const Rows rows(query.inputs[0]);
  const int64_t label_step = query.inputs[1].strides[0];
  return {Bytes(0), [rows, label_step](const KernelArgs& args) {
            auto* count = args.out<unsigned long long>(0);
            launch_clear(args, count, Bytes(sizeof(*count)));
            with_row_threads(rows.length, [&]<int kThreads>() {
              launch_blocks(args, rows.count(), kThreads, accuracy_kernel<kThreads>, rows,
                            float_input(args, 0), args.in<int64_t>(1), label_step, count);
            });
          }};
}

}  // namespace

void register_max_cuda() {
  set_kernel(kMax, Backend::kCuda,
             [](const OpQuery& query) { return prepare_max(query, true); });
  set_kernel(kArgmax, Backend::kCuda,
             [](const OpQuery& query) { return prepare_max(query, false); });
  set_kernel(kMaxGrad, Backend::kCuda, prepare_max_grad);
  set_kernel(kAccuracyCount, Backend::kCuda, prepare_accuracy_count);
}

}  // namespace tidemark
