#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/map_cpu.h"

namespace tidemark::elementwise {

PreparedKernel prepare_add_cpu(const OpQuery& query) { return map_floats_cpu<Add, 2>(query); }
PreparedKernel prepare_sub_cpu(const OpQuery& query) { return map_floats_cpu<Sub, 2>(query); }
PreparedKernel prepare_mul_cpu(const OpQuery& query) { return map_floats_cpu<Mul, 2>(query); }
PreparedKernel prepare_div_cpu(const OpQuery& query) {
  return map_cpu<Div, float, float, float>(query);
}
PreparedKernel prepare_div_grad_cpu(const OpQuery& query) {
  return map_cpu<DivGrad, float, float, float, float>(query);
}
PreparedKernel prepare_add_scaled_cpu(const OpQuery& query) {
  return map_floats_cpu<AddScaled, 2>(query);
}

}  // namespace tidemark::elementwise
