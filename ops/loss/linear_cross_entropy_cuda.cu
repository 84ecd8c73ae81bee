// For each chunk of rows: the logits by cuBLASLt, one block for each row's sums, one or more
// for its gradient, and the gradients' products by cuBLASLt.
#include <algorithm>
#include <optional>

#include "ops/kernels/any_float.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/linear/gemm_cuda.h"
#include "ops/loss/cross_entropy_cuda.cuh"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/linear_cross_entropy_kernels.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

using loss::Batch;
using loss::RowSums;
using Problem = loss::LinearCrossEntropyProblem;

// Whether the label's score is the first of the row's largest; NaN counts as the largest.
template <int kThreads>
__device__ bool is_largest(const float* scores, int64_t classes, int64_t label, float largest) {
  const float mine = scores[label];
  if (mine < largest) return false;
  const bool nan = mine != mine;
  float beaten = 0;
  for (int64_t c = threadIdx.x; c < classes; c += kThreads) {
    const float other = scores[c];
    const bool before = nan ? other != other : !(other < mine);
    const bool behind = !nan && !(other <= mine);
    if (c < label ? before : behind && c > label) beaten = 1;
  }
  return block_reduce<kThreads>(beaten, Larger()) == 0;
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(Batch batch, const float* logits, const int64_t* labels, RowSums* sums,
                double* log_probs, unsigned long long* correct) {
  const int64_t row = blockIdx.x, label = labels[row * batch.label_step];
  if (batch.ignored(label)) return;
  const float* scores = logits + row * batch.classes;
  const RowMoments moments = row_moments<kThreads>(scores, batch.classes);
  const RowSums of_row = loss::sums_of(moments);
  if (threadIdx.x == 0) sums[row] = of_row;
  if (!batch.valid(label)) return;
  const bool right = is_largest<kThreads>(scores, batch.classes, label, moments.largest);
  if (threadIdx.x > 0) return;
  log_probs[row] = loss::log_prob(scores[label], of_row);
  // Integers: the order of additions does not matter.
  if (right) atomicAdd(correct, 1ull);
}

struct LogProbsOfRows {
  const double* log_probs;
  __device__ double operator()(int64_t row, int64_t) const { return log_probs[row]; }
};

// The products of a chunk.
struct Products {
  Products(const Problem& p, int64_t chunk_rows)
      : rows(chunk_rows),
        logits(GemmShape(p.rows_of_x(rows), p.weight, p.logits(rows), MatmulAttrs{0, 1}), false,
               p.tf32) {
    const TensorMeta d = p.logits_grad(rows);
    if (p.gx) {
      gx.emplace(GemmShape(d, p.weight, TensorMeta::contiguous(p.x.dtype, {rows, p.x.shape[1]}),
                           MatmulAttrs{}),
                 false, p.tf32);
    }
    if (p.gweight) {
      gweight.emplace(
          GemmShape(d, p.rows_of_x(rows),
                    TensorMeta::contiguous(DType::kFloat32, p.weight.shape), MatmulAttrs{1, 0}),
          false, p.tf32);
    }
  }
  Bytes workspace() const {
    return std::max({logits.workspace(), gx ? gx->workspace() : Bytes(0),
                     gweight ? gweight->workspace() : Bytes(0)});
  }

  int64_t rows;
  GemmPlan logits;
  std::optional<GemmPlan> gx, gweight;
};

template <class T>
PreparedKernel prepare(const Problem& p) {
  const loss::ProductsOfChunks<Products> chunks(p);
  const loss::LinearCrossEntropyWorkspace at(p, chunks.workspace(), Bytes(sizeof(double)));
  // Behind the rest: a chunk's sums, and the number of rows that count.
  const Bytes sums_bytes = align_up(Bytes(sizeof(RowSums)) * p.chunk);
  return {
      at.total + sums_bytes + Bytes(4), [=](const KernelArgs& args) {
        void* const stream = args.native_stream;
        const int64_t* labels = args.in<int64_t>(2);
        const void* weight = args.inputs[1];
        auto* log_probs = reinterpret_cast<double*>(args.workspace + at.rows);
        auto* logits = reinterpret_cast<float*>(args.workspace + at.logits);
        auto* d = reinterpret_cast<T*>(args.workspace + at.logits_grad);
        std::byte* const behind = args.workspace + at.total.count();
        auto* sums = reinterpret_cast<RowSums*>(behind);
        const float* scale = p.scaled ? args.in<float>(3) : nullptr;
        float* count = nullptr;
        if (!p.scaled && p.grads() && p.batch.attrs.ignores) {
          count = reinterpret_cast<float*>(behind + sums_bytes.count());
          launch_blocks(args, 1, kLaunchThreads, loss::count_kernel, p.batch, labels, count);
        }
        const auto clear = [&](size_t output) {
          launch_clear(args, args.outputs[output], args.output_metas[output].bytes());
        };
        clear(1);
        if (p.gweight) clear(p.gweight_output());
        for (int64_t first = 0; first < p.batch.rows; first += p.chunk) {
          const Products& products = chunks.at(first);
          const int64_t start = first * p.x.shape[1] * static_cast<int64_t>(sizeof(T));
          const int64_t* those = labels + first * p.batch.label_step;
          const void* x = args.inputs[0] + start;
          products.logits.run(stream, x, weight, nullptr, logits, args.workspace);
          with_row_threads(p.batch.classes, [&]<int kThreads>() {
            launch_blocks(args, products.rows, kThreads, rows_kernel<kThreads>, p.batch, logits,
                          those, sums, log_probs + first, args.out<unsigned long long>(1));
          });
          if (p.grads()) {
            const float rows = p.scaled ? 1 : static_cast<float>(p.batch.rows);
            launch_cross_entropy_grad(args, p.batch, products.rows, {scale, count, rows},
                                      static_cast<const float*>(logits), those,
                                      static_cast<const RowSums*>(sums), d);
          }
          if (p.gx) {
            products.gx->run(stream, d, weight, nullptr, args.outputs[Problem::kGx] + start,
                             args.workspace);
          }
          if (p.gweight) {
            products.gweight->run(stream, d, x, nullptr, args.outputs[p.gweight_output()],
                                  args.workspace, /*add=*/true);
          }
        }
        launch_blocks(args, 1, kLaunchThreads, loss::loss_kernel<LogProbsOfRows>, p.batch,
                      LogProbsOfRows{log_probs}, labels, scale, args.out<float>(0));
      }};
}

PreparedKernel prepare_any(const OpQuery& query) {
  return visit_float(query.inputs[0].dtype,
                     [&]<class T>(TypeTag<T>) { return prepare<T>(Problem(query)); });
}

__global__ void times_kernel(int64_t elements, const float* g, FloatInput x, FloatOutput y) {
  const int64_t i = thread_index();
  if (i < elements) y.set(i, *g * x[i]);
}

PreparedKernel prepare_grad(const OpQuery& query) {
  return {Bytes(0), [elements = query.outputs[0].shape.elements()](const KernelArgs& args) {
            launch(args, elements, times_kernel, elements, args.in<float>(0),
                   float_input(args, 1), float_output(args, 0));
          }};
}

}  // namespace

void register_linear_cross_entropy_cuda() {
  set_kernel(kLinearCrossEntropy, Backend::kCuda, prepare_any);
  set_kernel(kLinearCrossEntropyGrad, Backend::kCuda, prepare_grad);
}

}  // namespace tidemark
