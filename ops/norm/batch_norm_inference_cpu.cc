#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/norm/batch_norm_inference.h"
#include "ops/norm/batch_norm_loops.h"

namespace tidemark {
namespace {

template <class T>
void run(const KernelArgs& args) {
  const auto& attrs = args.attr<BatchNormAttrs>();
  const int64_t channels = args.input_metas[0].shape.back();
  const int64_t rows = args.input_metas[0].shape.elements() / channels;
  const T* x = args.in<T>(0);
  const T* residual = args.inputs.size() == 6 ? args.in<T>(5) : nullptr;
  T* y = args.out<T>(0);
  float* scale = reinterpret_cast<float*>(args.workspace);
  float* shift = scale + channels;
  fold_batch_norm(channels, attrs.eps, args.in<float>(1), args.in<float>(2), args.in<float>(3),
                  args.in<float>(4), scale, shift);
  const int64_t grain = std::max<int64_t>(1, kSerialElements / channels);
  parallel_chunks(rows, grain, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * channels;
    batch_norm_loops<T>().affine(x + at, scale, shift, residual ? residual + at : nullptr,
                                 attrs.relu != 0, y + at, end - begin, channels);
  });
}

}  // namespace

PreparedKernel prepare_batch_norm_inference_cpu(const OpQuery& query) {
  const Bytes workspace(8 * query.inputs[0].shape.back());
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {workspace, run<T>};
  });
}

}  // namespace tidemark
