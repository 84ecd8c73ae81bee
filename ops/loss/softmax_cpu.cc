#include <cmath>
#include <memory>

#include "ops/dnnl/primitive.h"
#include "ops/kernels/parallel_for.h"
#include "ops/loss/kernels.h"

namespace tidemark::loss {
namespace {

dnnl::memory::desc rows(const TensorMeta& x) {
  const int64_t columns = x.shape.back();
  return {{x.shape.elements() / columns, columns},
          dnnl::memory::data_type::f32,
          dnnl::memory::format_tag::ab};
}

template <class Softmax>
typename Softmax::primitive_desc describe(const TensorMeta& x) {
  const typename Softmax::desc desc(dnnl::prop_kind::forward_training, rows(x), 1);
  return {desc, onednn::attributes(), onednn::engine()};
}

// g, y -> dx
template <class Softmax, class SoftmaxGrad>
PreparedKernel prepare_backward(const OpQuery& query) {
  const TensorMeta& y = query.inputs[1];
  if (y.shape.elements() == 0) return {Bytes(0), [](const KernelArgs&) {}};
  const UseThreads use(query.threads);
  const typename SoftmaxGrad::desc desc(rows(y), rows(y), 1);
  const typename SoftmaxGrad::primitive_desc description(
      desc, onednn::attributes(), onednn::engine(), describe<Softmax>(y));
  onednn::WorkspaceLayout layout;
  auto primitive = std::make_shared<onednn::Primitive>(
      description,
      std::initializer_list<int>{DNNL_ARG_DIFF_DST, DNNL_ARG_DST, DNNL_ARG_DIFF_SRC}, use,
      layout);
  return {layout.total(), [primitive](const KernelArgs& args) {
            primitive->run(args.workspace, {args.inputs[0], args.inputs[1], args.outputs[0]});
          }};
}

// log(e^x / sum e^x). oneDNN's approximate logarithm is off by up to 3e-6, so a certain class
// would have a log-probability above 0 and a loss could be negative. This one is exact up to
// rounding.
void log_softmax_row(const float* x, float* y, int64_t classes) {
  float largest = x[0];
  for (int64_t c = 1; c < classes; ++c) largest = x[c] > largest ? x[c] : largest;
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - largest);
  const double shift = largest + std::log(sum);
  for (int64_t c = 0; c < classes; ++c) y[c] = static_cast<float>(x[c] - shift);
}

// An exponential counts as this many elements when work is split among threads.
constexpr int64_t kExpElements = 10;

}  // namespace

PreparedKernel prepare_softmax_cpu(const OpQuery& query) {
  const TensorMeta& x = query.inputs[0];
  if (x.shape.elements() == 0) return {Bytes(0), [](const KernelArgs&) {}};
  const UseThreads use(query.threads);
  onednn::WorkspaceLayout layout;
  auto primitive = std::make_shared<onednn::Primitive>(
      describe<dnnl::softmax_forward>(x),
      std::initializer_list<int>{DNNL_ARG_SRC, DNNL_ARG_DST}, use, layout);
  return {layout.total(), [primitive](const KernelArgs& args) {
            primitive->run(args.workspace, {args.inputs[0], args.outputs[0]});
          }};
}

PreparedKernel prepare_log_softmax_cpu(const OpQuery& query) {
  const Shape& shape = query.inputs[0].shape;
  if (shape.elements() == 0) return {Bytes(0), [](const KernelArgs&) {}};
  return {Bytes(0), [classes = shape.back(),
                     rows = shape.elements() / shape.back()](const KernelArgs& args) {
            const float* x = args.in<float>(0);
            float* y = args.out<float>(0);
            parallel_tasks(rows, kExpElements * classes, [&](int64_t row) {
              log_softmax_row(x + row * classes, y + row * classes, classes);
            });
          }};
}

PreparedKernel prepare_softmax_grad_cpu(const OpQuery& query) {
  return prepare_backward<dnnl::softmax_forward, dnnl::softmax_backward>(query);
}
PreparedKernel prepare_log_softmax_grad_cpu(const OpQuery& query) {
  return prepare_backward<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>(query);
}

}  // namespace tidemark::loss
