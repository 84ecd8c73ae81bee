#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/map_cpu.h"

namespace tidemark::elementwise {

PreparedKernel prepare_add_cpu(const OpQuery& query) {
  return map_cpu<Add, float, float, float>(query);
}
PreparedKernel prepare_sub_cpu(const OpQuery& query) {
  return map_cpu<Sub, float, float, float>(query);
}
PreparedKernel prepare_mul_cpu(const OpQuery& query) {
  return map_cpu<Mul, float, float, float>(query);
}
PreparedKernel prepare_div_cpu(const OpQuery& query) {
  return map_cpu<Div, float, float, float>(query);
}
PreparedKernel prepare_div_grad_cpu(const OpQuery& query) {
  return map_cpu<DivGrad, float, float, float, float>(query);
}
PreparedKernel prepare_add_scaled_cpu(const OpQuery& query) {
  return map_cpu<AddScaled, float, float, float>(query);
}

}  // namespace tidemark::elementwise
