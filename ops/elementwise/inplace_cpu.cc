#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/visit_dtype.h"

namespace tidemark::elementwise {

PreparedKernel prepare_add_in_place_cpu(const OpQuery& query) {
  return update_cpu<Add, float, float>(query);
}

PreparedKernel prepare_mul_in_place_cpu(const OpQuery& query) {
  return update_cpu<Scale, float>(query);
}

PreparedKernel prepare_copy_in_place_cpu(const OpQuery& query) {
  return visit_size(query.inputs[0].dtype,
                    [&]<class T>(TypeTag<T>) { return update_cpu<Replace, T, T>(query); });
}

PreparedKernel prepare_fill_in_place_cpu(const OpQuery& query) {
  return visit_dtype(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) {
    return update_cpu<ReplaceByValue<T>, T>(query);
  });
}

}  // namespace tidemark::elementwise
