// y = factor * sum of x over some dimensions.
//
// The general case (groups.h) sums one output after the other.
#include <algorithm>
#include <vector>

#include "ops/kernels/any_float.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/reduce/groups.h"
#include "ops/reduce/kernels.h"

namespace tidemark::reduce {
namespace {

float scaled(double total, const KernelArgs& args) {
  return static_cast<float>(total * args.scalars[0]);
}

// Sixteen lanes, so that additions are vector instructions; then the lanes in order.
template <class T>
double sum_run(const T* x, int64_t n) {
  constexpr int64_t kLanes = 16;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
  }
  for (int64_t lane = 0; i < n; ++i, ++lane) lanes[lane] += x[i];
  double total = 0;
  for (float lane : lanes) total += lane;
  return total;
}

// (outer, summed) -> (outer), `summed` gapless.
template <class T>
PreparedKernel prepare_rows(Group outer, Group summed) {
  constexpr int64_t kRun = 4096;
  const int64_t runs = std::max<int64_t>(1, (summed.extent + kRun - 1) / kRun);
  const auto run_sum = [=](const KernelArgs& args, int64_t task) {
    const int64_t begin = task % runs * kRun;
    const T* row = args.in<T>(0) + task / runs * outer.stride;
    return sum_run(row + begin, std::min(kRun, summed.extent - begin));
  };
  if (runs == 1) {
    return {Bytes(0), [=](const KernelArgs& args) {
              const FloatOutput y = float_output(args, 0);
              parallel_tasks(outer.extent, summed.extent, [&](int64_t row) {
                y.set(row, scaled(run_sum(args, row), args));
              });
            }};
  }
  return {Bytes(outer.extent * runs * 8), [=](const KernelArgs& args) {
            double* partial = reinterpret_cast<double*>(args.workspace);
            parallel_tasks(outer.extent * runs, kRun,
                           [&](int64_t task) { partial[task] = run_sum(args, task); });
            const FloatOutput y = float_output(args, 0);
            parallel_tasks(outer.extent, runs, [&](int64_t row) {
              double total = 0;
              for (int64_t i = 0; i < runs; ++i) total += partial[row * runs + i];
              y.set(row, scaled(total, args));
            });
          }};
}

// (outer, summed, inner) -> (outer, inner), `inner` gapless: adds up rows, for a block of rows
// and of columns at a time.
template <class T>
PreparedKernel prepare_columns(Group outer, Group summed, Group inner) {
  constexpr int64_t kRows = 512, kColumns = 1024;
  const int64_t row_blocks = std::max<int64_t>(1, (summed.extent + kRows - 1) / kRows);
  const int64_t column_blocks = (inner.extent + kColumns - 1) / kColumns;
  const Bytes workspace(row_blocks == 1 ? 0 : outer.extent * row_blocks * inner.extent * 4);
  return {workspace, [=](const KernelArgs& args) {
            const T* x = args.in<T>(0);
            const FloatOutput y = float_output(args, 0);
            float* partial = reinterpret_cast<float*>(args.workspace);
            const int64_t block =
                std::min(kRows, summed.extent) * std::min(kColumns, inner.extent);
            parallel_tasks(outer.extent * row_blocks * column_blocks, block, [&](int64_t task) {
              const int64_t column = task % column_blocks * kColumns;
              const int64_t rows_done = task / column_blocks % row_blocks * kRows;
              const int64_t columns = std::min(kColumns, inner.extent - column);
              const int64_t rows = std::min(kRows, summed.extent - rows_done);
              const int64_t o = task / column_blocks / row_blocks;
              const T* from = x + o * outer.stride + rows_done * summed.stride + column;
              float totals[kColumns];
              std::fill_n(totals, columns, 0.f);
              for (int64_t r = 0; r < rows; ++r, from += summed.stride) {
                for (int64_t c = 0; c < columns; ++c) totals[c] += from[c];
              }
              if (row_blocks == 1) {
                const int64_t to = o * inner.extent + column;
                for (int64_t c = 0; c < columns; ++c) y.set(to + c, scaled(totals[c], args));
              } else {
                std::copy_n(totals, columns,
                            partial + task / column_blocks * inner.extent + column);
              }
            });
            if (row_blocks == 1) return;
            parallel_tasks(outer.extent * inner.extent, row_blocks, [&](int64_t i) {
              const int64_t o = i / inner.extent, column = i % inner.extent;
              double total = 0;
              for (int64_t b = 0; b < row_blocks; ++b) {
                total += partial[(o * row_blocks + b) * inner.extent + column];
              }
              y.set(i, scaled(total, args));
            });
          }};
}

template <class T>
PreparedKernel prepare_general(const std::vector<Group>& groups, int64_t outputs) {
  std::vector<Group> kept, summed;
  int64_t terms = 1;
  for (const Group& group : groups) {
    (group.summed ? summed : kept).push_back(group);
    if (group.summed) terms *= group.extent;
  }
  const auto offset = [](const std::vector<Group>& in, int64_t index) {
    int64_t at = 0;
    for (size_t d = in.size(); d-- > 0;) {
      at += index % in[d].extent * in[d].stride;
      index /= in[d].extent;
    }
    return at;
  };
  const Group last = summed.empty() ? Group() : summed.back();
  return {Bytes(0), [=](const KernelArgs& args) {
            const FloatOutput y = float_output(args, 0);
            parallel_tasks(outputs, terms, [&](int64_t i) {
              const T* x = args.in<T>(0) + offset(kept, i);
              double total = 0;
              for (int64_t term = 0; term < terms; term += last.extent) {
                const T* run = x + offset(summed, term);
                for (int64_t j = 0; j < last.extent; ++j) total += run[j * last.stride];
              }
              y.set(i, scaled(total, args));
            });
          }};
}

}  // namespace

PreparedKernel prepare_sum_cpu(const OpQuery& query) {
  const TensorMeta& x = query.inputs[0];
  const std::vector<Group> groups = merge_groups(x, query.attr<SumAttrs>().dims);
  const int64_t outputs = query.outputs[0].shape.elements();
  if (outputs == 0) return {Bytes(0), [](const KernelArgs&) {}};
  if (x.shape.elements() == 0) {
    return {Bytes(0), [outputs](const KernelArgs& args) {
              const FloatOutput y = float_output(args, 0);
              for (int64_t i = 0; i < outputs; ++i) y.set(i, scaled(0, args));
            }};
  }
  const Groups parts(groups);
  return visit_float(x.dtype, [&]<class T>(TypeTag<T>) {
    switch (parts.form) {
      case Groups::Form::kRows: return prepare_rows<T>(parts.outer, parts.summed);
      case Groups::Form::kColumns:
        return prepare_columns<T>(parts.outer, parts.summed, parts.inner);
      case Groups::Form::kGeneral: break;
    }
    return prepare_general<T>(groups, outputs);
  });
}

}  // namespace tidemark::reduce
