#include <vector>

#include "ops/kernels/map_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"
#include "ops/view/contiguous.h"
#include "ops/view/kernels.h"
#include "ops/view/view.h"

namespace tidemark {
namespace {

struct CopyElement {
  template <class T>
  __device__ void operator()(T& y, const T& x) const {
    y = x;
  }
};

// Copies `from`, in its layout, to a part of the output.
struct Part {
  PackedLoop loop;
  int64_t start = 0;

  Part(const TensorMeta& to, const TensorMeta& from)
      : loop(pack(make_loop(from.shape, {&to, &from}), {to, from})), start(to.offset) {}

  template <class T>
  void copy(const KernelArgs& args, const T* from) const {
    apply_cuda(loop, args, CopyElement(), Writes<T>{args.out<T>(0) + start},
               Reads<const T>{from});
  }
};

// The part of `whole` that starts at `start` in dimension d and has the shape of `part`.
TensorMeta part_of(const TensorMeta& whole, const TensorMeta& part, size_t d, int64_t start) {
  return {whole.dtype, part.shape, whole.strides, start * whole.strides[d]};
}

PreparedKernel prepare_copy(const OpQuery& query) {
  return visit_size(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [part = Part(query.outputs[0], query.inputs[0])](const KernelArgs& args) {
              part.copy(args, args.in<T>(0));
            }};
  });
}

PreparedKernel prepare_narrow_grad(const OpQuery& query) {
  const auto& attrs = query.attr<view::NarrowGradAttrs>();
  const TensorMeta &g = query.inputs[0], &dx = query.outputs[0];
  const Part part(part_of(dx, g, static_cast<size_t>(attrs.dimension), attrs.start), g);
  return visit_size(g.dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [part, bytes = dx.bytes()](const KernelArgs& args) {
              launch_clear(args, args.outputs[0], bytes);
              part.copy(args, args.in<T>(0));
            }};
  });
}

PreparedKernel prepare_concat(const OpQuery& query) {
  const size_t d = static_cast<size_t>(query.attr<view::ConcatAttrs>().dimension);
  std::vector<Part> parts;
  int64_t done = 0;
  for (const TensorMeta& input : query.inputs) {
    parts.emplace_back(part_of(query.outputs[0], input, d, done), input);
    done += input.shape[d];
  }
  return visit_size(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [parts](const KernelArgs& args) {
              for (size_t i = 0; i < parts.size(); ++i) parts[i].copy(args, args.in<T>(i));
            }};
  });
}

}  // namespace

void register_copy_cuda() {
  set_kernel(kCopy, Backend::kCuda, prepare_copy);
  set_kernel(kConcat, Backend::kCuda, prepare_concat);
  set_kernel(kNarrowGrad, Backend::kCuda, prepare_narrow_grad);
}

}  // namespace tidemark
