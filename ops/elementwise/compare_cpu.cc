#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/visit_dtype.h"

namespace tidemark::elementwise {
namespace {

template <class F>
PreparedKernel prepare_comparison(const OpQuery& query) {
  return visit_dtype(query.inputs[0].dtype,
                     [&]<class T>(TypeTag<T>) { return map_cpu<F, bool, T, T>(query); });
}

}  // namespace

PreparedKernel prepare_eq_cpu(const OpQuery& query) { return prepare_comparison<Equal>(query); }
PreparedKernel prepare_gt_cpu(const OpQuery& query) {
  return prepare_comparison<Greater>(query);
}

PreparedKernel prepare_where_cpu(const OpQuery& query) {
  return map_cpu<Select, float, bool, float, float>(query);
}
PreparedKernel prepare_where_grad_cpu(const OpQuery& query) {
  return map_cpu<SelectGrad, float, bool, float>(query);
}
PreparedKernel prepare_where_other_grad_cpu(const OpQuery& query) {
  return map_cpu<SelectOtherGrad, float, bool, float>(query);
}

PreparedKernel prepare_cast_cpu(const OpQuery& query) {
  return visit_dtype(query.inputs[0].dtype, [&]<class From>(TypeTag<From>) {
    return visit_dtype(query.outputs[0].dtype, [&]<class To>(TypeTag<To>) {
      return map_cpu<Cast<To>, To, From>(query);
    });
  });
}

}  // namespace tidemark::elementwise
