// y = factor * sum of x over some dimensions. Partial sums are over ranges that depend on
// shapes alone, and are added in order.
#include <algorithm>
#include <vector>

#include "ops/kernels/any_float.h"
#include "ops/kernels/block_cuda.cuh"
#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/strided.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/reduce/groups.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/reduce.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

using reduce::Group;
using reduce::Groups;

constexpr int64_t kRun = 8192;  // elements that one block sums: 32 per thread, in float

__device__ float scaled(double total, double factor) {
  return static_cast<float>(total * factor);
}

// One block for each run of each row. It writes y or, if a row has several runs, one of its
// `runs` partial sums.
template <int kThreads, class T>
__global__ void __launch_bounds__(kThreads)
    sum_runs(int64_t runs, int64_t length, int64_t row_stride, double factor, const T* x,
             FloatOutput y, double* partial) {
  const int64_t row = blockIdx.x / runs, run = blockIdx.x % runs;
  const int64_t end = min((run + 1) * kRun, length);
  const T* from = x + row * row_stride;
  float sum = 0;
#pragma unroll 4
  for (int64_t i = run * kRun + threadIdx.x; i < end; i += kThreads) sum += from[i];
  const double total = block_sum<kThreads>(static_cast<double>(sum));
  if (threadIdx.x > 0) return;
  if (partial) {
    partial[blockIdx.x] = total;
  } else {
    y.set(row, scaled(total, factor));
  }
}

__global__ void __launch_bounds__(kLaunchThreads)
    finish_runs(int64_t runs, double factor, const double* partial, FloatOutput y) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < runs; i += kLaunchThreads) {
    sum += partial[blockIdx.x * runs + i];
  }
  const double total = block_sum<kLaunchThreads>(sum);
  if (threadIdx.x == 0) y.set(blockIdx.x, scaled(total, factor));
}

// (outer, summed) -> (outer), `summed` gapless.
template <class T>
PreparedKernel prepare_rows(Group outer, Group summed) {
  const int64_t runs = (summed.extent + kRun - 1) / kRun;
  const Bytes workspace(runs > 1 ? outer.extent * runs * 8 : 0);
  return {workspace, [=](const KernelArgs& args) {
            const T* x = args.in<T>(0);
            const FloatOutput y = float_output(args, 0);
            double* partial = runs > 1 ? reinterpret_cast<double*>(args.workspace) : nullptr;
            const double factor = args.scalars[0];
            with_row_threads(summed.extent, [&]<int kThreads>() {
              launch_blocks(args, outer.extent * runs, kThreads, sum_runs<kThreads, T>, runs,
                            summed.extent, outer.stride, factor, x, y, partial);
            });
            if (!partial) return;
            launch_blocks(args, outer.extent, kLaunchThreads, finish_runs, runs, factor,
                          partial, y);
          }};
}

// (outer, summed, inner) -> (outer, inner), `inner` gapless.
template <class T>
PreparedKernel prepare_columns(Group outer, Group summed, Group inner, bool aligned) {
  const ColumnSums sums(outer.extent, summed.extent, inner.extent, outer.stride, summed.stride,
                        aligned && outer.stride % 4 == 0 && summed.stride % 4 == 0);
  return {sums.workspace(), [sums](const KernelArgs& args) {
            sums.run(args, args.in<T>(0), float_output(args, 0), args.scalars[0],
                     args.workspace);
          }};
}

// Operand 0 of each loop is x. The loops say where an output's terms start, and where each term
// lies from there.
struct Terms {
  StridedLoop kept;
  StridedLoop summed;
};

template <class T>
__device__ double sum_terms(const StridedLoop& summed, const T* x, int64_t first,
                            int64_t step) {
  double total = 0;
  for (int64_t term = first; term < summed.elements; term += step) {
    total += x[summed.offset(0, term)];
  }
  return total;
}

template <class T>
__global__ void sum_each(const __grid_constant__ Terms terms, double factor, const T* x,
                         FloatOutput y) {
  const int64_t i = thread_index();
  if (i >= terms.kept.elements) return;
  y.set(i, scaled(sum_terms(terms.summed, x + terms.kept.offset(0, i), 0, 1), factor));
}

template <class T>
__global__ void __launch_bounds__(kLaunchThreads)
    sum_each_by_block(const __grid_constant__ Terms terms, double factor, const T* x,
                      FloatOutput y) {
  const T* from = x + terms.kept.offset(0, blockIdx.x);
  const double total =
      block_sum<kLaunchThreads>(sum_terms(terms.summed, from, threadIdx.x, kLaunchThreads));
  if (threadIdx.x == 0) y.set(blockIdx.x, scaled(total, factor));
}

template <class T>
PreparedKernel prepare_general(const std::vector<Group>& groups) {
  Terms terms;
  terms.kept.elements = terms.summed.elements = 1;
  terms.kept.extents[0] = terms.summed.extents[0] = 1;
  terms.kept.rank = terms.summed.rank = 0;
  for (const Group& group : groups) {
    StridedLoop& loop = group.summed ? terms.summed : terms.kept;
    loop.elements *= group.extent;
    loop.extents[loop.rank] = group.extent;
    loop.strides[0][loop.rank++] = group.stride;
  }
  const bool by_block = terms.summed.elements >= kLaunchThreads;
  return {Bytes(0), [=](const KernelArgs& args) {
            const T* x = args.in<T>(0);
            const FloatOutput y = float_output(args, 0);
            if (by_block) {
              launch_blocks(args, terms.kept.elements, kLaunchThreads, sum_each_by_block<T>,
                            terms, args.scalars[0], x, y);
            } else {
              launch(args, terms.kept.elements, sum_each<T>, terms, args.scalars[0], x, y);
            }
          }};
}

__global__ void fill_kernel(float value, int64_t n, FloatOutput y) {
  const int64_t i = thread_index();
  if (i < n) y.set(i, value);
}

PreparedKernel prepare_sum(const OpQuery& query) {
  const TensorMeta& x = query.inputs[0];
  const int64_t outputs = query.outputs[0].shape.elements();
  if (x.shape.elements() == 0) {
    return {Bytes(0), [outputs](const KernelArgs& args) {
              launch(args, outputs, fill_kernel, static_cast<float>(0 * args.scalars[0]),
                     outputs, float_output(args, 0));
            }};
  }
  const std::vector<Group> groups =
      reduce::merge_groups(x, query.attr<reduce::SumAttrs>().dims);
  const Groups parts(groups);
  return visit_float(x.dtype, [&]<class T>(TypeTag<T>) {
    switch (parts.form) {
      case Groups::Form::kRows: return prepare_rows<T>(parts.outer, parts.summed);
      case Groups::Form::kColumns:
        return prepare_columns<T>(parts.outer, parts.summed, parts.inner, x.offset % 4 == 0);
      case Groups::Form::kGeneral: break;
    }
    return prepare_general<T>(groups);
  });
}

}  // namespace

void register_sum_cuda() { set_kernel(kSum, Backend::kCuda, prepare_sum); }

}  // namespace tidemark
