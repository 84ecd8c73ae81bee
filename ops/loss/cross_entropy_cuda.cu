#include "ops/kernels/visit_dtype.h"
#include "ops/loss/cross_entropy_cuda.cuh"
#include "ops/loss/kernels.h"
#include "ops/loss/loss.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

using loss::Batch;

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
    return loss::log_prob(logits[row * classes + label], sums[row]);
  }
};

__global__ void nll_loss_grad_kernel(Batch batch, const float* g, const int64_t* labels,
                                     float* dx) {
  const int64_t i = thread_index();
  if (i >= batch.rows * batch.classes) return;
  const int64_t row = i / batch.classes;
  const int64_t label = labels[row * batch.label_step];
  const float mine =
      i - row * batch.classes == label ? -(*g / static_cast<float>(batch.rows)) : 0;
  dx[i] = batch.valid(label) ? mine : NAN;
}

template <int kThreads, class T>
__global__ void __launch_bounds__(kThreads)
    row_sums_kernel(int64_t classes, const T* logits, loss::RowSums* sums) {
  const RowMoments row = row_moments<kThreads>(logits + blockIdx.x * classes, classes);
  if (threadIdx.x == 0) sums[blockIdx.x] = loss::sums_of(row);
}

PreparedKernel prepare_nll_loss(const OpQuery& query) {
  const Batch batch(query.inputs[0].shape[1], query.inputs[1]);
  return {Bytes(0), [batch](const KernelArgs& args) {
            const GivenLogProbs log_prob{args.in<float>(0), batch.classes};
            launch_blocks(args, 1, kLaunchThreads, loss::loss_kernel<GivenLogProbs>, batch,
                          log_prob, args.in<int64_t>(1), nullptr, args.out<float>(0));
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
              launch_blocks(args, 1, kLaunchThreads, loss::loss_kernel<LogProbsOfSums<T>>,
                            batch, LogProbsOfSums<T>{logits, sums, batch.classes},
                            args.in<int64_t>(1), nullptr, args.out<float>(0));
            }};
  });
}

PreparedKernel prepare_cross_entropy_grad(const OpQuery& query) {
  const Batch batch(query.inputs[1].shape[1], query.inputs[2],
                    query.attr<loss::CrossEntropyAttrs>());
  const bool some = batch.attrs.ignores != 0;
  return visit_float(query.inputs[1].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {
        Bytes(some ? 4 : 0), [batch, some](const KernelArgs& args) {
          float* count = some ? reinterpret_cast<float*>(args.workspace) : nullptr;
          const int64_t* labels = args.in<int64_t>(2);
          if (some) {
            launch_blocks(args, 1, kLaunchThreads, loss::count_kernel, batch, labels, count);
          }
          launch_cross_entropy_grad(
              args, batch, batch.rows,
              {args.in<float>(0), count, static_cast<float>(batch.rows)}, args.in<T>(1), labels,
              reinterpret_cast<const loss::RowSums*>(args.in<float>(3)), args.out<T>(0));
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
