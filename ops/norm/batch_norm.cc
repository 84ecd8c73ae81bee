#include "ops/norm/batch_norm.h"

#include <utility>

#include "ops/autograd/autograd.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

// Parameters and statistics, whatever x is.
TensorMeta of_channels(const Shape& x) {
  return TensorMeta::contiguous(DType::kFloat32, {x.back()});
}

void check_channels(const char* op, const OpQuery& query, size_t first, size_t last) {
  const Shape& x = query.inputs[0].shape;
  check_fits(op, query, x.rank() >= 2, "input 0 must have at least 2 dimensions");
  for (size_t i = first; i <= last; ++i) {
    check_fits(op, query, query.inputs[i].shape[0] == x.back(),
               "parameters must have one element for each channel");
  }
}

std::vector<TensorMeta> infer_batch_norm(const OpQuery& query) {
  constexpr const char* kName = "batch_norm";
  const auto& attrs = query.attr<BatchNormAttrs>();
  const bool residual = attrs.relu && query.inputs.size() == 4;
  const DType dtype = residual ? check_floats(kName, query, {kAnyRank, 1, 1, kAnyRank}, 0b1001)
                               : check_floats(kName, query, {kAnyRank, 1, 1}, 0b1);
  check_channels(kName, query, 1, 2);
  const Shape& x = query.inputs[0].shape;
  check_fits(kName, query, !residual || query.inputs[3].shape == x,
             "the residual must have the input's shape");
  check_fits(kName, query, attrs.eps >= 0, "eps must not be negative");
  return {TensorMeta::contiguous(dtype, x), of_channels(x), of_channels(x)};
}

std::vector<TensorMeta> infer_batch_norm_grad(const OpQuery& query) {
  constexpr const char* kName = "batch_norm_grad";
  const auto& attrs = query.attr<BatchNormGradAttrs>();
  DType dtype;
  if (!attrs.relu) {
    dtype = check_floats(kName, query, {kAnyRank, kAnyRank, 1, 1, 1}, 0b11);
  } else if (attrs.residual) {
    dtype = check_floats(kName, query, {kAnyRank, kAnyRank, 1, 1, 1, kAnyRank}, 0b100011);
  } else {
    dtype = check_floats(kName, query, {kAnyRank, kAnyRank, 1, 1, 1, 1}, 0b11);
  }
  const Shape& x = query.inputs[0].shape;
  check_channels(kName, query, 2, attrs.relu && !attrs.residual ? 5 : 4);
  check_fits(kName, query, query.inputs[1].shape == x,
             "the output's gradient must have the input's shape");
  check_fits(kName, query, !attrs.residual || query.inputs[5].shape == x,
             "the output must have the input's shape");
  const TensorMeta like_x = TensorMeta::contiguous(dtype, x);
  std::vector<TensorMeta> outputs{like_x, of_channels(x), of_channels(x)};
  if (attrs.residual) outputs.push_back(like_x);
  return outputs;
}

// Operations for each element of x: two for each moment, two to scale and shift, and what
// follows.
OpCost cost_batch_norm(const OpQuery& query) {
  const double elements = static_cast<double>(query.inputs[0].shape.elements());
  return {.flops = (query.attr<BatchNormAttrs>().relu ? 8.0 : 6.0) * elements,
          .bytes_moved = bytes_moved(query)};
}

OpCost cost_batch_norm_grad(const OpQuery& query) {
  const double elements = static_cast<double>(query.inputs[0].shape.elements());
  return {.flops = (query.attr<BatchNormGradAttrs>().relu ? 13.0 : 9.0) * elements,
          .bytes_moved = bytes_moved(query)};
}

BatchNormResult run(const Tensor& x_in, const Tensor& gamma_in, const Tensor& beta_in,
                    double eps, bool relu, const Tensor& residual_in) {
  const Tensor x = contiguous(x_in);
  const Tensor gamma = contiguous(gamma_in);
  const Tensor beta = contiguous(beta_in);
  const bool with_residual = residual_in.defined();
  const Tensor residual = with_residual ? contiguous(residual_in) : Tensor();
  const BatchNormAttrs attrs{eps, relu};
  std::vector<Tensor> outputs = with_residual
                                    ? dispatch(kBatchNorm, {x, gamma, beta, residual}, attrs)
                                    : dispatch(kBatchNorm, {x, gamma, beta}, attrs);
  if (needs_grad({x, gamma, beta, residual})) {
    std::vector<Saved> saved{Saved(x), Saved(gamma), Saved(outputs[1]), Saved(outputs[2])};
    if (relu) saved.push_back(with_residual ? Saved(outputs[0]) : Saved(beta));
    const BatchNormGradAttrs grad_attrs{eps, relu, with_residual, 0};
    record("batch_norm", {x, gamma, beta, residual}, std::span(outputs).first(1),
           batch_norm_gradient(std::move(saved), grad_attrs));
  }
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace

GradFn batch_norm_gradient(std::vector<Saved> saved, const BatchNormGradAttrs& attrs) {
  return [saved = std::move(saved), attrs](std::span<const Tensor> gys, std::span<Tensor> grads,
                                           std::span<const bool> wanted) {
    std::vector<Tensor> inputs{saved[0].get(), contiguous(gys[0])};
    for (size_t i = 1; i < saved.size(); ++i) inputs.push_back(saved[i].get());
    std::vector<Tensor> made = dispatch(kBatchNormGrad, inputs, attrs);
    for (size_t i = 0; i < made.size(); ++i) {
      if (wanted[i]) grads[i] = made[i];
    }
  };
}

const OpDef kBatchNorm{.name = "batch_norm",
                       .infer = infer_batch_norm,
                       .cost = cost_batch_norm,
                       .prepare = {prepare_batch_norm_cpu, nullptr, nullptr}};
const OpDef kBatchNormGrad{.name = "batch_norm_grad",
                           .infer = infer_batch_norm_grad,
                           .cost = cost_batch_norm_grad,
                           .prepare = {prepare_batch_norm_grad_cpu, nullptr, nullptr}};

BatchNormResult batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                           double eps) {
  return run(x, gamma, beta, eps, false, {});
}

BatchNormResult batch_norm_relu(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                double eps, const Tensor& residual) {
  return run(x, gamma, beta, eps, true, residual);
}

}  // namespace tidemark
