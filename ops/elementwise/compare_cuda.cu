#include "ops/elementwise/compare.h"
#include "ops/elementwise/functors.h"
#include "ops/kernels/map_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

template <class F>
PreparedKernel prepare_comparison(const OpQuery& query) {
  return visit_dtype(query.inputs[0].dtype,
                     [&]<class T>(TypeTag<T>) { return plain_map_cuda<F, bool, T, T>(query); });
}

PreparedKernel prepare_cast(const OpQuery& query) {
  const DType from = query.inputs[0].dtype, to = query.outputs[0].dtype;
  // This cast runs on all weights in every step, so it must be as fast as memory is.
  if (from == DType::kFloat32 && to == DType::kBFloat16) {
    return map_cuda<Cast<BFloat16>, BFloat16, float>(query);
  }
  if (from == DType::kBFloat16 && to == DType::kFloat32) {
    return map_cuda<Cast<float>, float, BFloat16>(query);
  }
  return visit_dtype(from, [&]<class From>(TypeTag<From>) {
    return visit_dtype(
        to, [&]<class To>(TypeTag<To>) { return plain_map_cuda<Cast<To>, To, From>(query); });
  });
}

}  // namespace

void register_compare_cuda() {
  const auto set = [](const OpDef& op, PrepareKernel prepare) {
    set_kernel(op, Backend::kCuda, prepare);
  };
  set(kEq, prepare_comparison<Equal>);
  set(kGt, prepare_comparison<Greater>);
  set(kWhere, map_cuda<Select, float, bool, float, float>);
  set(kWhereGrad, map_cuda<SelectGrad, float, bool, float>);
  set(kWhereOtherGrad, map_cuda<SelectOtherGrad, float, bool, float>);
  set(kCast, prepare_cast);
}

}  // namespace tidemark
