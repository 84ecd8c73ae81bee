#include "ops/create/create.h"
#include "ops/create/kernels.h"
#include "ops/kernels/launch_cuda.cuh"
#include "ops/kernels/map_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

template <class T>
struct Value {
  T value;
  static Value from(const Scalars& scalars) { return {static_cast<T>(scalars[0])}; }
  TIDEMARK_HOST_DEVICE T operator()() const { return value; }
};

// A new tensor has no gaps.
PreparedKernel prepare_fill(const OpQuery& query) {
  return visit_dtype(query.outputs[0].dtype, [&]<class T>(TypeTag<T>) {
    return detail::map_cuda<kWalkFlat, Value<T>, T>(query, std::index_sequence<>());
  });
}

__global__ void arange_kernel(int64_t* y, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) y[i] = i;
}

PreparedKernel prepare_arange(const OpQuery& query) {
  return {Bytes(0), [n = query.outputs[0].shape.elements()](const KernelArgs& args) {
            launch(args, n, arange_kernel, args.out<int64_t>(0), n);
          }};
}

}  // namespace

void register_create_cuda() {
  set_kernel(kFill, Backend::kCuda, prepare_fill);
  set_kernel(kArange, Backend::kCuda, prepare_arange);
}

}  // namespace tidemark
