// Materialised attention: cuBLASLt multiplies heads in place, and our own kernels work on the
// rows of scores in between.
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "ops/attention/call_cuda.cuh"
#include "ops/kernels/block_cuda.cuh"
#include "ops/linear/gemm_cuda.h"

namespace tidemark::attention {
namespace {

struct Larger {
  __device__ float operator()(float a, float b) const { return b > a ? b : a; }
};

// One block per row of scores, which turns into a row of probabilities: in place or, in
// bfloat16, in another matrix.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(const __grid_constant__ Call call, float* scores,
                   FloatOutput probabilities) {
  const int64_t keys = call.extents.keys, queries = call.extents.queries;
  const int64_t number = blockIdx.x, query = number % queries;
  const int64_t b = number / queries / call.extents.heads;
  float* row = scores + number * keys;
  float mine = -INFINITY;
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    if (call.sees(b, query, key)) mine = Larger()(mine, row[key]);
  }
  const float largest = block_reduce<kThreads>(mine, Larger());
  float part = 0;
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    const float p = call.sees(b, query, key) ? expf(row[key] - largest) : 0;
    row[key] = p;
    part += p;
  }
  const float sum = block_sum<kThreads>(part);
  const float share = largest == -INFINITY ? 0 : 1 / sum;
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    probabilities.set(number * keys + key, row[key] * share);
  }
}

__global__ void drop_kernel(const __grid_constant__ Call call, int64_t elements, FloatInput p,
                            FloatOutput kept) {
  const int64_t i = thread_index();
  if (i >= elements) return;
  const int64_t keys = call.extents.keys;
  kept.set(i, p[i] * call.multiplier(i / keys, i % keys));
}

// Turns dP, as the product gives it, into dS without the scale: in place or in another matrix.
__global__ void score_grad_kernel(const __grid_constant__ Call call, int64_t elements,
                                  FloatInput p, const float* delta, const float* dp,
                                  FloatOutput ds) {
  const int64_t i = thread_index();
  if (i >= elements) return;
  const int64_t keys = call.extents.keys, number = i / keys;
  ds.set(i, p[i] * (dp[i] * call.multiplier(number, i % keys) - delta[number]));
}

// Views (B, T, H, D) as (B, H, T, D).
TensorMeta heads(const TensorMeta& x) {
  return {x.dtype,
          {x.shape[0], x.shape[2], x.shape[1], x.shape[3]},
          {x.strides[0], x.strides[2], x.strides[1], x.strides[3]},
          x.offset};
}

TensorMeta matrix_of(const Call& call, DType dtype) {
  const Extents& e = call.extents;
  return TensorMeta::contiguous(dtype, {e.batch, e.heads, e.queries, e.keys});
}

Bytes most(std::initializer_list<Bytes> workspaces) {
  return align_up(*std::max_element(workspaces.begin(), workspaces.end()));
}

}  // namespace

PreparedKernel prepare_materialised_cuda(const OpQuery& query) {
  const Call prepared(query, 0, 3);
  const DType dtype = query.inputs[0].dtype;
  const TensorMeta s = matrix_of(prepared, DType::kFloat32), p = matrix_of(prepared, dtype);
  const GemmPlan scores(
      GemmShape(heads(query.inputs[0]), heads(query.inputs[1]), s, MatmulAttrs{0, 1}), false,
      query.tf32, static_cast<float>(prepared.attrs.scale));
  const GemmPlan output(
      GemmShape(p, heads(query.inputs[2]), heads(query.outputs[0]), MatmulAttrs{}), false,
      query.tf32);
  const Bytes library = most({scores.workspace(), output.workspace()});
  const bool drops = prepared.attrs.dropout > 0;
  // Behind the library's workspace lies a matrix: first the scores, if they cannot lie where P
  // goes, then what dropout leaves of P.
  const bool apart = dtype != DType::kFloat32;
  return {drops || apart ? library + s.bytes() : library, [=](const KernelArgs& args) {
            const Call call = prepared.with(args);
            std::byte* matrix = args.workspace + library.count();
            const FloatOutput probabilities = float_output(args, 1);
            float* scores_at = apart ? reinterpret_cast<float*>(matrix) : args.out<float>(1);
            scores.run(args.native_stream, call.q.data, call.k.data, nullptr, scores_at,
                       args.workspace);
            with_row_threads(call.extents.keys, [&]<int kThreads>() {
              launch_blocks(args, call.rows(), kThreads, softmax_kernel<kThreads>, call,
                            scores_at, probabilities);
            });
            const void* kept = probabilities.data;
            if (drops) {
              const int64_t elements = p.shape.elements();
              launch(args, elements, drop_kernel, call, elements,
                     FloatInput(probabilities.data, dtype), FloatOutput(matrix, dtype));
              kept = matrix;
            }
            output.run(args.native_stream, kept, call.v.data, nullptr, args.outputs[0],
                       args.workspace);
          }};
}

// g, q, k, v, y, P[, keys][, starts] -> dq, dk, dv
PreparedKernel prepare_materialised_grad_cuda(const OpQuery& query) {
  const Call prepared(query, 1, 6);
  const DType dtype = query.inputs[1].dtype;
  const TensorMeta wide = matrix_of(prepared, DType::kFloat32), p = matrix_of(prepared, dtype);
  const TensorMeta g = heads(query.inputs[0]), q = heads(query.inputs[1]),
                   k = heads(query.inputs[2]), v = heads(query.inputs[3]);
  const float scale = static_cast<float>(prepared.attrs.scale);
  const auto plan = [&](const TensorMeta& a, const TensorMeta& b, const TensorMeta& y,
                        const MatmulAttrs& attrs, float factor) {
    return GemmPlan(GemmShape(a, b, y, attrs), false, query.tf32, factor);
  };
  const GemmPlan dv = plan(p, g, heads(query.outputs[2]), MatmulAttrs{1, 0}, 1);
  const GemmPlan dp = plan(g, v, wide, MatmulAttrs{0, 1}, 1);
  const GemmPlan dq = plan(p, k, heads(query.outputs[0]), MatmulAttrs{}, scale);
  const GemmPlan dk = plan(p, q, heads(query.outputs[1]), MatmulAttrs{1, 0}, scale);
  const Bytes library = most({dv.workspace(), dp.workspace(), dq.workspace(), dk.workspace()});
  const Bytes delta_bytes = align_up(size_of(DType::kFloat32) * prepared.rows());
  // dP is float32. What dropout leaves of P, and later dS, have P's type: they lie in dP's
  // place or, in bfloat16, behind dP.
  const Bytes dp_bytes = dtype == DType::kFloat32 ? Bytes(0) : align_up(wide.bytes());
  return {library + delta_bytes + dp_bytes + p.bytes(), [=](const KernelArgs& args) {
            const Call call = prepared.with(args);
            void* stream = args.native_stream;
            std::byte* at = args.workspace + library.count();
            float* delta = reinterpret_cast<float*>(at);
            float* gradient = reinterpret_cast<float*>(at + delta_bytes.count());
            std::byte* matrix = at + delta_bytes.count() + dp_bytes.count();
            const void* gy = args.inputs[0];
            const FloatInput probabilities = float_input(args, 5);
            const int64_t elements = p.shape.elements();
            launch_delta(args, call, float_input(args, 0), float_input(args, 4), delta);
            const void* kept = probabilities.data;
            if (call.dropout.active()) {
              launch(args, elements, drop_kernel, call, elements, probabilities,
                     FloatOutput(matrix, dtype));
              kept = matrix;
            }
            dv.run(stream, kept, gy, nullptr, args.outputs[2], args.workspace);
            dp.run(stream, gy, call.v.data, nullptr, gradient, args.workspace);
            launch(args, elements, score_grad_kernel, call, elements, probabilities, delta,
                   gradient, FloatOutput(matrix, dtype));
            dq.run(stream, matrix, call.k.data, nullptr, args.outputs[0], args.workspace);
            dk.run(stream, matrix, call.q.data, nullptr, args.outputs[1], args.workspace);
          }};
}

}  // namespace tidemark::attention
