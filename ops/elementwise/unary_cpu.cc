#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/vector_math.h"

namespace tidemark::elementwise {

PreparedKernel prepare_scale_cpu(const OpQuery& query) {
  return map_cpu<Scale, float, float>(query);
}
PreparedKernel prepare_neg_cpu(const OpQuery& query) {
  return map_cpu<Neg, float, float>(query);
}
PreparedKernel prepare_abs_cpu(const OpQuery& query) {
  return map_cpu<Abs, float, float>(query);
}
PreparedKernel prepare_abs_grad_cpu(const OpQuery& query) {
  return map_cpu<AbsGrad, float, float, float>(query);
}
PreparedKernel prepare_relu_cpu(const OpQuery& query) {
  return map_cpu<Relu, float, float>(query);
}
PreparedKernel prepare_relu_grad_cpu(const OpQuery& query) {
  return map_cpu<ReluGrad, float, float, float>(query);
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
PreparedKernel prepare_tanh_cpu(const OpQuery& query) {
  return map_cpu<Tanh, float, float>(query);
}
PreparedKernel prepare_tanh_grad_cpu(const OpQuery& query) {
  return map_cpu<TanhGrad, float, float, float>(query);
}
PreparedKernel prepare_sigmoid_cpu(const OpQuery& query) {
  return map_cpu<Sigmoid, float, float>(query);
}
PreparedKernel prepare_sigmoid_grad_cpu(const OpQuery& query) {
  return map_cpu<SigmoidGrad, float, float, float>(query);
}
PreparedKernel prepare_relu6_cpu(const OpQuery& query) {
  return map_cpu<Relu6, float, float>(query);
}
PreparedKernel prepare_relu6_grad_cpu(const OpQuery& query) {
  return map_cpu<Relu6Grad, float, float, float>(query);
}
PreparedKernel prepare_silu_cpu(const OpQuery& query) {
  return map_cpu<Silu<VectorMath>, float, float>(query);
}
PreparedKernel prepare_silu_grad_cpu(const OpQuery& query) {
  return map_cpu<SiluGrad<VectorMath>, float, float, float>(query);
}

}  // namespace tidemark::elementwise
