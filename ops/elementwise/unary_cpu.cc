#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/vector_math.h"

namespace tidemark::elementwise {

PreparedKernel prepare_scale_cpu(const OpQuery& query) {
  return map_floats_cpu<Scale, 1>(query);
}
PreparedKernel prepare_neg_cpu(const OpQuery& query) { return map_floats_cpu<Neg, 1>(query); }
PreparedKernel prepare_abs_cpu(const OpQuery& query) {
  return map_cpu<Abs, float, float>(query);
}
PreparedKernel prepare_abs_grad_cpu(const OpQuery& query) {
  return map_cpu<AbsGrad, float, float, float>(query);
}
PreparedKernel prepare_relu_cpu(const OpQuery& query) { return map_floats_cpu<Relu, 1>(query); }
PreparedKernel prepare_relu_grad_cpu(const OpQuery& query) {
  return map_floats_cpu<ReluGrad, 2>(query);
}
PreparedKernel prepare_exp_cpu(const OpQuery& query) {
  return map_cpu<Exp, float, float>(query);
}
PreparedKernel prepare_log_cpu(const OpQuery& query) {
  return map_cpu<Log, float, float>(query);
}
PreparedKernel prepare_sqrt_cpu(const OpQuery& query) {
  return map_cpu<Sqrt, float, float>(query);
}
PreparedKernel prepare_sqrt_grad_cpu(const OpQuery& query) {
  return map_cpu<SqrtGrad, float, float, float>(query);
}
PreparedKernel prepare_tanh_cpu(const OpQuery& query) { return map_floats_cpu<Tanh, 1>(query); }
PreparedKernel prepare_tanh_grad_cpu(const OpQuery& query) {
  return map_floats_cpu<TanhGrad, 2>(query);
}
PreparedKernel prepare_sigmoid_cpu(const OpQuery& query) {
  return map_floats_cpu<Sigmoid, 1>(query);
}
PreparedKernel prepare_sigmoid_grad_cpu(const OpQuery& query) {
  return map_floats_cpu<SigmoidGrad, 2>(query);
}
PreparedKernel prepare_relu6_cpu(const OpQuery& query) {
  return map_floats_cpu<Relu6, 1>(query);
}
PreparedKernel prepare_relu6_grad_cpu(const OpQuery& query) {
  return map_floats_cpu<Relu6Grad, 2>(query);
}
PreparedKernel prepare_silu_cpu(const OpQuery& query) {
  return map_floats_cpu<Silu<VectorMath>, 1>(query);
}
PreparedKernel prepare_silu_grad_cpu(const OpQuery& query) {
  return map_floats_cpu<SiluGrad<VectorMath>, 2>(query);
}

}  // namespace tidemark::elementwise
