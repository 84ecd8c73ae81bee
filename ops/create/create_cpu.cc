#include "ops/create/kernels.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"

namespace tidemark::create {

PreparedKernel prepare_fill_cpu(const OpQuery& query) {
  const int64_t n = query.outputs[0].shape.elements();
  return visit_dtype(query.outputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [n](const KernelArgs& args) {
              T* y = args.out<T>(0);
              const T value = static_cast<T>(args.scalars[0]);
              parallel_for(n, [y, value](int64_t i) { y[i] = value; });
            }};
  });
}

void arange_cpu(const KernelArgs& args) {
  int64_t* y = args.out<int64_t>(0);
  parallel_for(args.output_metas[0].shape.elements(), [y](int64_t i) { y[i] = i; });
}

}  // namespace tidemark::create
