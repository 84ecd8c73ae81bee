#include "ops/elementwise/functors.h"
#include "ops/elementwise/inplace.h"
#include "ops/kernels/map_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

PreparedKernel prepare_copy_in_place(const OpQuery& query) {
  return visit_size(query.inputs[0].dtype,
                    [&]<class T>(TypeTag<T>) { return update_cuda<Replace, T, T>(query); });
}

PreparedKernel prepare_fill_in_place(const OpQuery& query) {
  return visit_dtype(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) {
    return update_cuda<ReplaceByValue<T>, T>(query);
  });
}

}  // namespace

void register_inplace_cuda() {
  const auto set = [](const OpDef& op, PrepareKernel prepare) {
    set_kernel(op, Backend::kCuda, prepare);
  };
  set(kAddInPlace, update_cuda<Add, float, float>);
  set(kMulInPlace, update_cuda<Scale, float>);
  set(kCopyInPlace, prepare_copy_in_place);
  set(kFillInPlace, prepare_fill_in_place);
}

}  // namespace tidemark
