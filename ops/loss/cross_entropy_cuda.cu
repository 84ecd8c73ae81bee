#include "ops/kernels/visit_dtype.h"
#include "ops/loss/kernels.h"
#include "ops/loss/loss.h"
#include "ops/loss/rows_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

// The known properties of the scores (N, C) and labels (N).
struct Batch {
  Batch(int64_t class_count, const TensorMeta& labels,
        const loss::CrossEntropyAttrs& cross = {})
      : rows(labels.shape[0]),
        classes(class_count),
        label_step(labels.strides[0]),
        attrs(cross) {}

  int64_t rows;
  int64_t classes;
  int64_t label_step;
  loss::CrossEntropyAttrs attrs;
};

__device__ bool valid(const Batch& batch, int64_t label) {
  return label >= 0 && label < batch.classes;
}

__device__ bool ignored(const Batch& batch, int64_t label) {
  return batch.attrs.ignores && label == batch.attrs.ignored;
}

// The number of rows that count, for all threads of the only block; 1 if none does, as it
// divides a sum that is 0.
__device__ double counted(const Batch& batch, const int64_t* labels) {
  if (!batch.attrs.ignores) return static_cast<double>(batch.rows);
  double count = 0;
  for (int64_t row = threadIdx.x; row < batch.rows; row += kLaunchThreads) {
    count += !ignored(batch, labels[row * batch.label_step]);
  }
  const double total = block_sum<kLaunchThreads>(count);
  return total > 0 ? total : 1;
}

__global__ void __launch_bounds__(kLaunchThreads)
    count_kernel(Batch batch, const int64_t* labels, float* count) {
  const double total = counted(batch, labels);
  if (threadIdx.x == 0) *count = static_cast<float>(total);
}

// Gives the logarithm of a class's probability.
struct GivenLogProbs {
  const float* log_probs;
  int64_t classes;
  __device__ double operator()(int64_t row, int64_t label) const {
    return log_probs[row * classes + label];
  }
};
template <class T>
struct LogProbsOfSums {
  const T* logits;
  const loss::RowSums* sums;
  int64_t classes;
  __device__ double operator()(int64_t row, int64_t label) const {
    const double score = static_cast<float>(logits[row * classes + label]);
    return score - sums[row].largest + log(static_cast<double>(sums[row].inverse));
  }
};

// One block serves the batch: rows are few, and only one score of each is read.
template <class LogProb>
__global__ void __launch_bounds__(kLaunchThreads)
    mean_loss_kernel(Batch batch, LogProb log_prob, const int64_t* labels, float* loss) {
  double sum = 0;
  for (int64_t row = threadIdx.x; row < batch.rows; row += kLaunchThreads) {
    const int64_t label = labels[row * batch.label_step];
    if (ignored(batch, label)) continue;
    sum -= valid(batch, label) ? log_prob(row, label) : double{NAN};
  }
  const double total = block_sum<kLaunchThreads>(sum);
  const double count = counted(batch, labels);
  if (threadIdx.x == 0) *loss = static_cast<float>(total / count);
}

__global__ void nll_loss_grad_kernel(Batch batch, const float* g, const int64_t* labels,
                                     float* dx) {
  const int64_t i = thread_index();
  if (i >= batch.rows * batch.classes) return;
  const int64_t row = i / batch.classes;
  const int64_t label = labels[row * batch.label_step];
  const float mine =
      i - row * batch.classes == label ? -(*g / static_cast<float>(batch.rows)) : 0;
  dx[i] = valid(batch, label) ? mine : NAN;
}

template <int kThreads, class T>
__global__ void __launch_bounds__(kThreads)
    row_sums_kernel(int64_t classes, const T* logits, loss::RowSums* sums) {
  const RowMoments row = row_moments<kThreads>(logits + blockIdx.x * classes, classes);
  if (threadIdx.x == 0) sums[blockIdx.x] = {row.largest, static_cast<float>(1 / row.sum)};
}

constexpr int kEach = 8;  // scores of a row per thread, all read before one is written

// Block (row, chunk). `count` may be null: all rows count.
template <int kThreads, class T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_grad_kernel(Batch batch, unsigned chunks, const float* g, const T* logits,
                              const int64_t* labels, const loss::RowSums* sums,
                              const float* count, T* dx) {
  const int64_t row = blockIdx.x / chunks;
  const int64_t first = int64_t{blockIdx.x % chunks} * (kEach * kThreads) + threadIdx.x;
  const auto for_each = [&](const auto& f) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t c = first + i * kThreads;
      if (c < batch.classes) f(i, c);
    }
  };
  T* to = dx + row * batch.classes;
  const int64_t label = labels[row * batch.label_step];
  if (ignored(batch, label)) {
    for_each([&](int, int64_t c) { to[c] = 0.0F; });
    return;
  }
  const T* from = logits + row * batch.classes;
  float scores[kEach];
  for_each([&](int i, int64_t c) { scores[i] = from[c]; });
  const float share = *g / (count ? *count : static_cast<float>(batch.rows));
  const loss::RowSums of_row = sums[row];
  for_each([&](int i, int64_t c) {
    const float probability = expf(scores[i] - of_row.largest) * of_row.inverse;
    const float mine = c == label ? probability - 1 : probability;
    to[c] = valid(batch, label) ? mine * share : NAN;
  });
}

PreparedKernel prepare_nll_loss(const OpQuery& query) {
  const Batch batch(query.inputs[0].shape[1], query.inputs[1]);
  return {Bytes(0), [batch](const KernelArgs& args) {
            const GivenLogProbs log_prob{args.in<float>(0), batch.classes};
            launch_blocks(args, 1, kLaunchThreads, mean_loss_kernel<GivenLogProbs>, batch,
                          log_prob, args.in<int64_t>(1), args.out<float>(0));
          }};
}

PreparedKernel prepare_nll_loss_grad(const OpQuery& query) {
  const Batch batch(query.outputs[0].shape[1], query.inputs[1]);
  return {Bytes(0), [batch](const KernelArgs& args) {
            launch(args, batch.rows * batch.classes, nll_loss_grad_kernel, batch,
                   args.in<float>(0), args.in<int64_t>(1), args.out<float>(0));
          }};
}

PreparedKernel prepare_cross_entropy(const OpQuery& query) {
  const Batch batch(query.inputs[0].shape[1], query.inputs[1],
                    query.attr<loss::CrossEntropyAttrs>());
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [batch](const KernelArgs& args) {
              const T* logits = args.in<T>(0);
              auto* sums = reinterpret_cast<loss::RowSums*>(args.out<float>(1));
              if (batch.classes > 0) {
                with_row_threads(batch.classes, [&]<int kThreads>() {
                  launch_blocks(args, batch.rows, kThreads, row_sums_kernel<kThreads, T>,
                                batch.classes, logits, sums);
                });
              }
              launch_blocks(args, 1, kLaunchThreads, mean_loss_kernel<LogProbsOfSums<T>>, batch,
                            LogProbsOfSums<T>{logits, sums, batch.classes}, args.in<int64_t>(1),
                            args.out<float>(0));
            }};
  });
}

PreparedKernel prepare_cross_entropy_grad(const OpQuery& query) {
  const Batch batch(query.inputs[1].shape[1], query.inputs[2],
                    query.attr<loss::CrossEntropyAttrs>());
  const bool some = batch.attrs.ignores != 0;
  return visit_float(query.inputs[1].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(some ? 4 : 0), [batch, some](const KernelArgs& args) {
              float* count = some ? reinterpret_cast<float*>(args.workspace) : nullptr;
              const int64_t* labels = args.in<int64_t>(2);
              if (some)
                launch_blocks(args, 1, kLaunchThreads, count_kernel, batch, labels, count);
              with_row_threads(batch.classes, [&]<int kThreads>() {
                constexpr int64_t kChunk = kEach * kThreads;
                const int64_t chunks = (batch.classes + kChunk - 1) / kChunk;
                launch_blocks(args, batch.rows * chunks, kThreads,
                              cross_entropy_grad_kernel<kThreads, T>, batch,
                              static_cast<unsigned>(chunks), args.in<float>(0), args.in<T>(1),
                              labels, reinterpret_cast<const loss::RowSums*>(args.in<float>(3)),
                              static_cast<const float*>(count), args.out<T>(0));
              });
            }};
  });
}

}  // namespace

void register_cross_entropy_cuda() {
  set_kernel(kNllLoss, Backend::kCuda, prepare_nll_loss);
  set_kernel(kNllLossGrad, Backend::kCuda, prepare_nll_loss_grad);
  set_kernel(kCrossEntropy, Backend::kCuda, prepare_cross_entropy);
  set_kernel(kCrossEntropyGrad, Backend::kCuda, prepare_cross_entropy_grad);
}

}  // namespace tidemark
