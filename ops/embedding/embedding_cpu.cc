#include <algorithm>
#include <string>

#include "ops/embedding/embedding.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Sums are in float over this many positions, and in double beyond.
constexpr int64_t kRun = 256;
// Columns of a row that one task sums.
constexpr int64_t kColumns = 256;

template <class Id, class T>
void forward(const KernelArgs& args, int64_t rows, int64_t width, int64_t count) {
  const T* table = args.in<T>(0);
  const Id* ids = args.in<Id>(1);
  T* y = args.out<T>(0);
  // Checked before the copies, which other threads make: an exception must not leave those.
  for (int64_t i = 0; i < count; ++i) {
    if (ids[i] >= 0 && ids[i] < rows) continue;
    throw UsageError("id " + std::to_string(ids[i]) + " at position " + std::to_string(i) +
                     " is not in [0, " + std::to_string(rows) + ")");
  }
  parallel_tasks(count, width,
                 [&](int64_t i) { std::copy_n(table + ids[i] * width, width, y + i * width); });
}

// dx = sum of gy over `count` positions, for `columns` columns, at most kColumns.
template <class T>
void sum_rows(const T* gy, int64_t width, const int32_t* positions, int64_t count,
              int64_t columns, T* dx) {
  double total[kColumns] = {};
  float sum[kColumns];
  for (int64_t run = 0; run < count; run += kRun) {
    const int64_t end = std::min(count, run + kRun);
    std::copy_n(gy + positions[run] * width, columns, sum);
    for (int64_t i = run + 1; i < end; ++i) {
      const T* from = gy + positions[i] * width;
      for (int64_t c = 0; c < columns; ++c) sum[c] += from[c];
    }
    if (count <= kRun) {
      std::copy_n(sum, columns, dx);
      return;
    }
    for (int64_t c = 0; c < columns; ++c) total[c] += sum[c];
  }
  for (int64_t c = 0; c < columns; ++c) dx[c] = static_cast<float>(total[c]);
}

// A counting sort groups the positions by id and keeps their order; then each row adds up its
// own. Workspace: where each row's positions start (V + 1), then the positions, all int32.
template <class Id, class T>
void backward(const KernelArgs& args, int64_t rows, int64_t padding, int64_t width,
              int64_t count) {
  const T* gy = args.in<T>(0);
  const Id* ids = args.in<Id>(1);
  T* dx = args.out<T>(0);
  int32_t* starts = reinterpret_cast<int32_t*>(args.workspace);
  int32_t* positions = starts + rows + 1;
  const auto counts = [&](Id id) { return id >= 0 && id < rows && id != padding; };
  std::fill_n(starts, rows + 1, 0);
  for (int64_t i = 0; i < count; ++i) {
    if (counts(ids[i])) ++starts[ids[i] + 1];
  }
  for (int64_t v = 0; v < rows; ++v) starts[v + 1] += starts[v];
  for (int64_t i = 0; i < count; ++i) {
    if (counts(ids[i])) positions[starts[ids[i]]++] = static_cast<int32_t>(i);
  }
  // The sort has advanced each start to that of the next row.
  const int64_t blocks = (width + kColumns - 1) / kColumns;
  parallel_tasks(rows * blocks, std::min(width, kColumns), [&](int64_t task) {
    const int64_t v = task / blocks, column = task % blocks * kColumns;
    const int64_t columns = std::min(kColumns, width - column);
    const int64_t first = v == 0 ? 0 : starts[v - 1];
    T* to = dx + v * width + column;
    if (starts[v] == first) {
      std::fill_n(to, columns, T(0.0F));
    } else {
      sum_rows(gy + column, width, positions + first, starts[v] - first, columns, to);
    }
  });
}

// visit(TypeTag<Id>(), TypeTag<T>())
template <class Visitor>
PreparedKernel visit_types(const OpQuery& query, const Visitor& visit) {
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T> type) {
    return query.inputs[1].dtype == DType::kInt64 ? visit(TypeTag<int64_t>(), type)
                                                  : visit(TypeTag<int32_t>(), type);
  });
}

}  // namespace

PreparedKernel prepare_embedding_cpu(const OpQuery& query) {
  const Shape& table = query.inputs[0].shape;
  const int64_t rows = table[0], width = table[1];
  const int64_t count = query.inputs[1].shape.elements();
  return visit_types(query, [=]<class Id, class T>(TypeTag<Id>, TypeTag<T>) -> PreparedKernel {
    return {Bytes(0),
            [=](const KernelArgs& args) { forward<Id, T>(args, rows, width, count); }};
  });
}

PreparedKernel prepare_embedding_grad_cpu(const OpQuery& query) {
  const auto& attrs = query.attr<EmbeddingGradAttrs>();
  const int64_t rows = attrs.rows, padding = attrs.padding_idx;
  const int64_t width = query.inputs[0].shape.back();
  const int64_t count = query.inputs[1].shape.elements();
  return visit_types(query, [=]<class Id, class T>(TypeTag<Id>, TypeTag<T>) -> PreparedKernel {
    return {Bytes((rows + 1 + count) * 4), [=](const KernelArgs& args) {
              backward<Id, T>(args, rows, padding, width, count);
            }};
  });
}

}  // namespace tidemark
