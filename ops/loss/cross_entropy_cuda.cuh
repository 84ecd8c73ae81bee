// Private to this folder: kernels that cross_entropy and linear_cross_entropy share.
#pragma once

#include <type_traits>

#include "ops/loss/batch.h"
#include "ops/loss/rows_cuda.cuh"

namespace tidemark::loss {

// The number of rows that count, for all threads of the only block; 1 if none does, as it
// divides a sum that is 0.
inline __device__ double counted(const Batch& batch, const int64_t* labels) {
  if (!batch.attrs.ignores) return static_cast<double>(batch.rows);
  double count = 0;
  for (int64_t row = threadIdx.x; row < batch.rows; row += kLaunchThreads) {
    count += !batch.ignored(labels[row * batch.label_step]);
  }
  const double total = block_sum<kLaunchThreads>(count);
  return total > 0 ? total : 1;
}

static __global__ void __launch_bounds__(kLaunchThreads)
    count_kernel(Batch batch, const int64_t* labels, float* count) {
  const double total = counted(batch, labels);
  if (threadIdx.x == 0) *count = static_cast<float>(total);
}

inline __device__ RowSums sums_of(const RowMoments& row) {
  return {row.largest, static_cast<float>(1 / row.sum)};
}

inline __device__ double log_prob(float score, const RowSums& sums) {
  return double{score} - sums.largest + log(static_cast<double>(sums.inverse));
}

// The mean over the rows that count or, if `scale` is not null, *scale times their sum. One
// block serves the batch: rows are few, and only one score of each is read. So it may take all
// the registers that it wants.
template <class LogProb>
__global__ void __launch_bounds__(kLaunchThreads, 1)
    loss_kernel(Batch batch, LogProb log_prob_of, const int64_t* labels, const float* scale,
                float* loss) {
  double sum = 0;
  for (int64_t row = threadIdx.x; row < batch.rows; row += kLaunchThreads) {
    const int64_t label = labels[row * batch.label_step];
    if (batch.ignored(label)) continue;
    sum -= batch.valid(label) ? log_prob_of(row, label) : double{NAN};
  }
  const double total = block_sum<kLaunchThreads>(sum);
  const double count = scale ? 1 : counted(batch, labels);
  if (threadIdx.x == 0) *loss = static_cast<float>(scale ? total * *scale : total / count);
}

// What a row's gradient is multiplied by: g / count.
struct GradFactor {
  const float* g;      // null: 1
  const float* count;  // null: `rows`
  float rows;
  __device__ float value() const { return (g ? *g : 1) / (count ? *count : rows); }
};

constexpr int kEach = 8;  // scores of a row per thread, all read before one is written

// Block (row, chunk). `dx` may be `logits`.
template <int kThreads, class From, class To>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_grad_kernel(Batch batch, unsigned chunks, GradFactor factor,
                              const From* logits, const int64_t* labels, const RowSums* sums,
                              To* dx) {
  const int64_t row = blockIdx.x / chunks;
  const int64_t first = int64_t{blockIdx.x % chunks} * (kEach * kThreads) + threadIdx.x;
  const auto for_each = [&](const auto& f) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t c = first + i * kThreads;
      if (c < batch.classes) f(i, c);
    }
  };
  To* to = dx + row * batch.classes;
  const int64_t label = labels[row * batch.label_step];
  if (batch.ignored(label)) {
    for_each([&](int, int64_t c) { to[c] = 0.0F; });
    return;
  }
  const From* from = logits + row * batch.classes;
  float scores[kEach];
  for_each([&](int i, int64_t c) { scores[i] = from[c]; });
  const float share = factor.value();
  const RowSums of_row = sums[row];
  for_each([&](int i, int64_t c) {
    const float probability = expf(scores[i] - of_row.largest) * of_row.inverse;
    const float mine = c == label ? probability - 1 : probability;
    to[c] = batch.valid(label) ? mine * share : NAN;
  });
}

// Of the first `rows` rows.
template <class From, class To>
void launch_cross_entropy_grad(const KernelArgs& args, const Batch& batch, int64_t rows,
                               const GradFactor& factor, const From* logits,
                               const int64_t* labels, const RowSums* sums, To* dx) {
  with_row_threads(batch.classes, [&]<int kThreads>() {
    constexpr int64_t kChunk = kEach * kThreads;
    const int64_t chunks = (batch.classes + kChunk - 1) / kChunk;
    launch_blocks(args, rows * chunks, kThreads, cross_entropy_grad_kernel<kThreads, From, To>,
                  batch, static_cast<unsigned>(chunks), factor, logits, labels, sums, dx);
  });
}

}  // namespace tidemark::loss
