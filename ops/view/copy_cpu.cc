#include <cstring>
#include <vector>

#include "ops/kernels/strided.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/view/kernels.h"

namespace tidemark::view {
namespace {

template <class T>
void copy(const StridedLoop& loop, T* to, const T* from) {
  apply(
      loop, [](T& y, const T& x) { y = x; }, to, from);
}

// The part of `whole` that starts at `start` in dimension d and has the shape of `part`.
TensorMeta part_of(const TensorMeta& whole, const TensorMeta& part, size_t d, int64_t start) {
  return {whole.dtype, part.shape, whole.strides, start * whole.strides[d]};
}

}  // namespace

PreparedKernel prepare_copy_cpu(const OpQuery& query) {
  const StridedLoop loop =
      make_loop(query.outputs[0].shape, {&query.outputs[0], &query.inputs[0]});
  return visit_size(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0),
            [loop](const KernelArgs& args) { copy(loop, args.out<T>(0), args.in<T>(0)); }};
  });
}

PreparedKernel prepare_narrow_grad_cpu(const OpQuery& query) {
  const auto& attrs = query.attr<NarrowGradAttrs>();
  const TensorMeta &g = query.inputs[0], &dx = query.outputs[0];
  const TensorMeta part = part_of(dx, g, static_cast<size_t>(attrs.dimension), attrs.start);
  const StridedLoop loop = make_loop(g.shape, {&part, &g});
  return visit_size(g.dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0),
            [loop, start = part.offset, n = dx.shape.elements()](const KernelArgs& args) {
              T* to = args.out<T>(0);
              parallel_for(n, [to](int64_t i) { to[i] = 0; });
              copy(loop, to + start, args.in<T>(0));
            }};
  });
}

PreparedKernel prepare_concat_cpu(const OpQuery& query) {
  struct Part {
    StridedLoop loop;
    int64_t start;
  };
  const size_t d = static_cast<size_t>(query.attr<ConcatAttrs>().dimension);
  std::vector<Part> parts;
  int64_t done = 0;
  for (const TensorMeta& input : query.inputs) {
    const TensorMeta part = part_of(query.outputs[0], input, d, done);
    parts.push_back({make_loop(input.shape, {&part, &input}), part.offset});
    done += input.shape[d];
  }
  return visit_size(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [parts](const KernelArgs& args) {
              for (size_t i = 0; i < parts.size(); ++i) {
                copy(parts[i].loop, args.out<T>(0) + parts[i].start, args.in<T>(i));
              }
            }};
  });
}

}  // namespace tidemark::view
