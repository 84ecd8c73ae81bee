#include "ops/norm/batch_norm_inference.h"

#include <utility>

#include "ops/autograd/autograd.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

std::vector<TensorMeta> infer(const OpQuery& query) {
  constexpr const char* kName = "batch_norm_inference";
  const bool residual = query.attr<BatchNormAttrs>().relu && query.inputs.size() == 6;
  const DType dtype =
      residual ? check_floats(kName, query, {kAnyRank, 1, 1, 1, 1, kAnyRank}, 0b100001)
               : check_floats(kName, query, {kAnyRank, 1, 1, 1, 1}, 0b1);
  const Shape& x = query.inputs[0].shape;
  check_fits(kName, query, x.rank() >= 2, "input 0 must have at least 2 dimensions");
  for (size_t i = 1; i <= 4; ++i) {
    check_fits(kName, query, query.inputs[i].shape[0] == x.back(),
               "parameters must have one element for each channel");
  }
  check_fits(kName, query, !residual || query.inputs[5].shape == x,
             "the residual must have the input's shape");
  return {TensorMeta::contiguous(dtype, x)};
}

OpCost cost(const OpQuery& query) {
  return {.flops = (query.attr<BatchNormAttrs>().relu ? 4.0 : 2.0) *
                   static_cast<double>(query.inputs[0].shape.elements()),
          .bytes_moved = bytes_moved(query)};
}

Tensor run(const Tensor& x_in, const Tensor& gamma_in, const Tensor& beta_in,
           const Tensor& mean_in, const Tensor& var_in, double eps, bool relu,
           const Tensor& residual_in) {
  const Tensor x = contiguous(x_in);
  const Tensor gamma = contiguous(gamma_in);
  const Tensor beta = contiguous(beta_in);
  const Tensor mean = contiguous(mean_in);
  const Tensor var = contiguous(var_in);
  const bool with_residual = residual_in.defined();
  const Tensor residual = with_residual ? contiguous(residual_in) : Tensor();
  const BatchNormAttrs attrs{eps, relu};
  std::vector<Tensor> y =
      with_residual
          ? dispatch(kBatchNormInference, {x, gamma, beta, mean, var, residual}, attrs)
          : dispatch(kBatchNormInference, {x, gamma, beta, mean, var}, attrs);
  if (needs_grad({x, gamma, beta, residual})) {
    BatchNormSaved saved{Saved(x), Saved(gamma), Saved(mean), Saved(var)};
    if (with_residual) {
      saved.y = Saved(y[0]);
    } else if (relu) {
      saved.beta = Saved(beta);
    }
    record("batch_norm_inference", {x, gamma, beta, residual}, y,
           batch_norm_gradient(std::move(saved), eps, /*frozen=*/true));
  }
  return y[0];
}

}  // namespace

const OpDef kBatchNormInference{
    .name = "batch_norm_inference",
    .infer = infer,
    .cost = cost,
    .prepare = {prepare_batch_norm_inference_cpu, nullptr, nullptr}};

Tensor batch_norm_inference(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                            const Tensor& running_mean, const Tensor& running_var, double eps) {
  return run(x, gamma, beta, running_mean, running_var, eps, false, {});
}

Tensor batch_norm_inference_relu(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                 const Tensor& running_mean, const Tensor& running_var,
                                 double eps, const Tensor& residual) {
  return run(x, gamma, beta, running_mean, running_var, eps, true, residual);
}

}  // namespace tidemark
