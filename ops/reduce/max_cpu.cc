#include <algorithm>
#include <cmath>

#include "ops/kernels/any_float.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/strided.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/rows.h"

namespace tidemark::reduce {
namespace {

// Index of the first largest element of a row.
int64_t argmax(const Rows& rows, FloatInput x, int64_t row) {
  x = x + rows.loop.offset(0, row);
  int64_t best = 0;
  for (int64_t i = 1; i < rows.length && !std::isnan(x[best * rows.step]); ++i) {
    if (!(x[i * rows.step] <= x[best * rows.step])) best = i;
  }
  return best;
}

}  // namespace

PreparedKernel prepare_max_cpu(const OpQuery& query) {
  return {Bytes(0), [rows = Rows(query.inputs[0])](const KernelArgs& args) {
            const float* x = args.in<float>(0);
            float* values = args.out<float>(0);
            int64_t* indices = args.out<int64_t>(1);
            parallel_tasks(rows.count(), rows.length, [&](int64_t row) {
              indices[row] = argmax(rows, {x, DType::kFloat32}, row);
              values[row] = x[rows.loop.offset(0, row) + indices[row] * rows.step];
            });
          }};
}

PreparedKernel prepare_argmax_cpu(const OpQuery& query) {
  return {Bytes(0), [rows = Rows(query.inputs[0])](const KernelArgs& args) {
            const float* x = args.in<float>(0);
            int64_t* indices = args.out<int64_t>(0);
            parallel_tasks(rows.count(), rows.length, [&](int64_t row) {
              indices[row] = argmax(rows, {x, DType::kFloat32}, row);
            });
          }};
}

PreparedKernel prepare_max_grad_cpu(const OpQuery& query) {
  const StridedLoop loop =
      make_loop(query.inputs[1].shape, {&query.inputs[0], &query.inputs[1]});
  return {Bytes(0), [loop, length = query.outputs[0].shape.back()](const KernelArgs& args) {
            const float* g = args.in<float>(0);
            const int64_t* indices = args.in<int64_t>(1);
            float* dx = args.out<float>(0);
            parallel_tasks(loop.elements, length, [&](int64_t row) {
              std::fill_n(dx + row * length, length, 0.f);
              dx[row * length + indices[loop.offset(1, row)]] = g[loop.offset(0, row)];
            });
          }};
}

PreparedKernel prepare_accuracy_count_cpu(const OpQuery& query) {
  const Rows rows(query.inputs[0]);
  const int64_t label_step = query.inputs[1].strides[0];
  return {Bytes(rows.count()), [rows, label_step](const KernelArgs& args) {
            const FloatInput logits = float_input(args, 0);
            const int64_t* labels = args.in<int64_t>(1);
            uint8_t* right = reinterpret_cast<uint8_t*>(args.workspace);
            parallel_tasks(rows.count(), rows.length, [&](int64_t row) {
              right[row] = argmax(rows, logits, row) == labels[row * label_step];
            });
            int64_t count = 0;
            for (int64_t row = 0; row < rows.count(); ++row) count += right[row];
            *args.out<int64_t>(0) = count;
          }};
}

}  // namespace tidemark::reduce
