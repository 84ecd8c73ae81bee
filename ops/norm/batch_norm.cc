#include "ops/norm/batch_norm.h"

#include <optional>
#include <utility>
#include <vector>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/relu.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

// Parameters and statistics are float32, whatever x is.
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

std::vector<TensorMeta> infer_batch_moments(const OpQuery& query) {
  check_floats("batch_moments", query, {kAnyRank}, 0b1);
  const Shape& x = query.inputs[0].shape;
  check_fits("batch_moments", query, x.rank() >= 2, "input 0 must have at least 2 dimensions");
  return {of_channels(x), of_channels(x)};
}

std::vector<TensorMeta> infer_batch_norm(const OpQuery& query) {
  constexpr const char* kName = "batch_norm";
  const auto& attrs = query.attr<BatchNormAttrs>();
  const Activation f{attrs.activation};
  const bool residual = query.inputs.size() == 6;
  const DType dtype =
      residual ? check_floats(kName, query, {kAnyRank, 1, 1, 1, 1, kAnyRank}, 0b100001)
               : check_floats(kName, query, {kAnyRank, 1, 1, 1, 1}, 0b1);
  check_channels(kName, query, 1, 4);
  const Shape& x = query.inputs[0].shape;
  check_fits(kName, query, !residual || query.inputs[5].shape == x,
             "the residual must have the input's shape");
  check_fits(kName, query, !residual || f == Activation::kReLU, "a residual needs a ReLU");
  check_fits(kName, query, attrs.eps >= 0, "eps must not be negative");
  std::vector<TensorMeta> outputs{TensorMeta::contiguous(dtype, x)};
  if (residual) outputs.push_back(signs_of(x));
  return outputs;
}

std::vector<TensorMeta> infer_batch_norm_grad(const OpQuery& query) {
  constexpr const char* kName = "batch_norm_grad";
  const bool beta = query.attr<BatchNormGradAttrs>().activation != 0;
  const DType dtype = beta ? check_floats(kName, query, {kAnyRank, kAnyRank, 1, 1, 1, 1}, 0b11)
                           : check_floats(kName, query, {kAnyRank, kAnyRank, 1, 1, 1}, 0b11);
  const Shape& x = query.inputs[0].shape;
  check_channels(kName, query, 2, beta ? 5 : 4);
  check_fits(kName, query, query.inputs[1].shape == x,
             "the output's gradient must have the input's shape");
  return {TensorMeta::contiguous(dtype, x), of_channels(x), of_channels(x)};
}

// Operations per element of x: two for each moment; two to scale and shift, and two for the
// activation and the residual (SiLU and its gradient: as in unary.cc).
double flops_of(int64_t activation, double plain, double activated, double silu) {
  if (Activation{activation} == Activation::kSiLU) return plain + silu;
  return activation == 0 ? plain : activated;
}

OpCost cost_batch_moments(const OpQuery& query) {
  return {.flops = 4.0 * static_cast<double>(query.inputs[0].shape.elements()),
          .bytes_moved = bytes_moved(query)};
}

OpCost cost_batch_norm(const OpQuery& query) {
  const double elements = static_cast<double>(query.inputs[0].shape.elements());
  return {.flops = flops_of(query.attr<BatchNormAttrs>().activation, 2, 4, 21) * elements,
          .bytes_moved = bytes_moved(query)};
}

OpCost cost_batch_norm_grad(const OpQuery& query) {
  const double elements = static_cast<double>(query.inputs[0].shape.elements());
  return {.flops = flops_of(query.attr<BatchNormGradAttrs>().activation, 9, 13, 50) * elements,
          .bytes_moved = bytes_moved(query)};
}

// The tensors that a call saves for its gradient.
struct BatchNormSaved {
  Saved x, gamma, mean, var;
  std::optional<Saved> beta{};   // for an activation
  std::optional<Saved> signs{};  // for a ReLU after a residual addition
};

// Gradients of x, gamma, beta and the residual; `frozen` as in BatchNormGradAttrs.
GradFn batch_norm_gradient(BatchNormSaved saved, const BatchNormGradAttrs& attrs) {
  return [saved = std::move(saved), attrs](std::span<Tensor> gys, std::span<Tensor> grads,
                                           std::span<const bool> wanted) mutable {
    Tensor g = contiguous(std::exchange(gys[0], {}));
    if (saved.signs) {
      g = dispatch1(kReluGrad, {g, saved.signs->get()});
      saved.signs.reset();
      if (wanted[3]) grads[3] = g;
    }
    std::vector<Tensor> inputs{saved.x.get(), g, saved.gamma.get(), saved.mean.get(),
                               saved.var.get()};
    if (saved.beta) inputs.push_back(saved.beta->get());
    std::vector<Tensor> made = dispatch(kBatchNormGrad, inputs, attrs);
    for (size_t i = 0; i < made.size(); ++i) {
      if (wanted[i]) grads[i] = made[i];
    }
  };
}

struct Operands {
  Tensor x, gamma, beta, residual;  // contiguous; residual: undefined if there is none
};

Operands operands_of(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const Tensor& residual) {
  return {contiguous(x), contiguous(gamma), contiguous(beta),
          residual.defined() ? contiguous(residual) : Tensor()};
}

// y, and its node. `name`: of the node.
Tensor normalise(const char* name, const Operands& in, const Tensor& mean, const Tensor& var,
                 const BatchNormAttrs& attrs, bool frozen) {
  const auto& [x, gamma, beta, residual] = in;
  std::vector<Tensor> inputs{x, gamma, beta, mean, var};
  if (residual.defined()) inputs.push_back(residual);
  const std::vector<Tensor> made = dispatch(kBatchNorm, inputs, attrs);
  Tensor y = made[0];
  if (needs_grad({x, gamma, beta, residual})) {
    BatchNormSaved saved{Saved(x), Saved(gamma), Saved(mean), Saved(var)};
    BatchNormGradAttrs grad{attrs.eps, attrs.activation, frozen};
    if (residual.defined()) {
      saved.signs = Saved(made[1]);
      grad.activation = 0;
    } else if (attrs.activation != 0) {
      saved.beta = Saved(beta);
    }
    record(name, {x, gamma, beta, residual}, std::span(&y, 1),
           batch_norm_gradient(std::move(saved), grad));
  }
  return y;
}

BatchNormResult train(const Operands& in, const BatchNormAttrs& attrs) {
  const std::vector<Tensor> moments = dispatch(kBatchMoments, {in.x});
  return {normalise("batch_norm", in, moments[0], moments[1], attrs, /*frozen=*/false),
          moments[0], moments[1]};
}

Tensor infer(const Operands& in, const Tensor& mean, const Tensor& var,
             const BatchNormAttrs& attrs) {
  return normalise("batch_norm_inference", in, contiguous(mean), contiguous(var), attrs,
                   /*frozen=*/true);
}

}  // namespace

const OpDef kBatchMoments = define_op("batch_moments", infer_batch_moments, cost_batch_moments,
                                      prepare_batch_moments_cpu);
const OpDef kBatchNorm = {.name = "batch_norm",
                          .infer = infer_batch_norm,
                          .cost = cost_batch_norm,
                          .may_overwrite = 0b100001,  // x and the residual
                          .prepare = {prepare_batch_norm_cpu}};
const OpDef kBatchNormGrad = {.name = "batch_norm_grad",
                              .infer = infer_batch_norm_grad,
                              .cost = cost_batch_norm_grad,
                              .may_overwrite = 0b11,  // x and gy
                              .prepare = {prepare_batch_norm_grad_cpu}};

BatchNormResult batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps,
                           Activation activation, const Tensor& residual) {
  return train(operands_of(x, gamma, beta, residual), {eps, static_cast<int64_t>(activation)});
}

Tensor batch_norm_inference(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                            const Tensor& running_mean, const Tensor& running_var, double eps,
                            Activation activation, const Tensor& residual) {
  return infer(operands_of(x, gamma, beta, residual), running_mean, running_var,
               {eps, static_cast<int64_t>(activation)});
}

}  // namespace tidemark
