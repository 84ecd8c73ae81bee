#include "ops/norm/batch_norm.h"

#include <utility>
#include <vector>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/unary.h"
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
  const bool relu = query.attr<BatchNormGradAttrs>().relu != 0;
  const DType dtype = relu ? check_floats(kName, query, {kAnyRank, kAnyRank, 1, 1, 1, 1}, 0b11)
                           : check_floats(kName, query, {kAnyRank, kAnyRank, 1, 1, 1}, 0b11);
  const Shape& x = query.inputs[0].shape;
  check_channels(kName, query, 2, relu ? 5 : 4);
  check_fits(kName, query, query.inputs[1].shape == x,
             "the output's gradient must have the input's shape");
  return {TensorMeta::contiguous(dtype, x), of_channels(x), of_channels(x)};
}

// Operations per element of x: two for each moment, two to scale and shift, and those of the
// ReLU.
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
    BatchNormSaved saved{Saved(x), Saved(gamma), Saved(outputs[1]), Saved(outputs[2])};
    if (with_residual) {
      saved.y = Saved(outputs[0]);
    } else if (relu) {
      saved.beta = Saved(beta);
    }
    record("batch_norm", {x, gamma, beta, residual}, std::span(outputs).first(1),
           batch_norm_gradient(std::move(saved), eps, /*frozen=*/false));
  }
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace

GradFn batch_norm_gradient(BatchNormSaved saved, double eps, bool frozen) {
  return [saved = std::move(saved), eps, frozen](std::span<Tensor> gys, std::span<Tensor> grads,
                                                 std::span<const bool> wanted) mutable {
    Tensor g = contiguous(std::exchange(gys[0], {}));
    if (saved.y) {
      // y and its gradient are freed before x is read.
      const Tensor y = saved.y->get();
      saved.y.reset();
      g = dispatch1(kReluGrad, {g, y});
      if (wanted[3]) grads[3] = g;
    }
    std::vector<Tensor> inputs{saved.x.get(), g, saved.gamma.get(), saved.mean.get(),
                               saved.var.get()};
    if (saved.beta) inputs.push_back(saved.beta->get());
    const BatchNormGradAttrs attrs{eps, saved.beta.has_value(), frozen};
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
