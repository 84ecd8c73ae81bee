#include "ops/norm/layer_norm.h"

#include "ops/autograd/autograd.h"
#include "ops/kernels/column_tiles.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

// Parameters, statistics and their gradients are float32, whatever x is.
TensorMeta float32(const Shape& shape) {
  return TensorMeta::contiguous(DType::kFloat32, shape);
}

Shape rows_of(const Shape& x) { return Shape(std::span(x.begin(), x.rank() - 1)); }

std::vector<TensorMeta> infer_layer_norm(const OpQuery& query) {
  constexpr const char* kName = "layer_norm";
  const DType dtype = check_floats(kName, query, {kAnyRank, 1, 1}, 0b1);
  const Shape& x = query.inputs[0].shape;
  check_fits(kName, query, x.rank() >= 1, "a scalar has no last dimension");
  for (size_t i = 1; i < 3; ++i) {
    check_fits(kName, query, query.inputs[i].shape[0] == x.back(),
               "gamma and beta must have the length of the last dimension");
  }
  check_fits(kName, query, query.attr<LayerNormAttrs>().eps >= 0, "eps must not be negative");
  return {TensorMeta::contiguous(dtype, x), float32(rows_of(x)), float32(rows_of(x))};
}

std::vector<TensorMeta> infer_layer_norm_grad(const OpQuery& query) {
  constexpr const char* kName = "layer_norm_grad";
  const DType dtype =
      check_floats(kName, query, {kAnyRank, kAnyRank, 1, kAnyRank, kAnyRank}, 0b11);
  const Shape& x = query.inputs[0].shape;
  check_fits(kName, query, x.rank() >= 1 && query.inputs[2].shape[0] == x.back(),
             "gamma must have the length of the last dimension");
  check_fits(kName, query, query.inputs[1].shape == x,
             "the output's gradient must have the input's shape");
  check_fits(kName, query,
             query.inputs[3].shape == rows_of(x) && query.inputs[4].shape == rows_of(x),
             "there must be one mean and one rstd for each row");
  return {TensorMeta::contiguous(dtype, x), float32({x.back()}), float32({x.back()})};
}

// Operations per element of x. Forward: one for the mean, three for the variance, four for y.
// Backward: four for each sum, two for each parameter, four for gx.
template <int flops>
OpCost cost(const OpQuery& query) {
  const double elements = static_cast<double>(query.inputs[0].shape.elements());
  return {.flops = flops * elements, .bytes_moved = bytes_moved(query)};
}

// The CUDA kernels' partial sums: two numbers of float64 per column and stretch of rows.
Bytes model_grad_workspace(const OpQuery& query) {
  const Shape& x = query.inputs[0].shape;
  const ColumnTiles tiles(x.elements() / x.back(), x.back());
  return Bytes(tiles.stretches * tiles.columns * 16);
}

}  // namespace

const OpDef kLayerNorm =
    define_op("layer_norm", infer_layer_norm, cost<8>, prepare_layer_norm_cpu);
const OpDef kLayerNormGrad = {.name = "layer_norm_grad",
                              .infer = infer_layer_norm_grad,
                              .cost = cost<14>,
                              .modelled_workspace = model_grad_workspace,
                              .may_overwrite = 0b11,  // x and gy
                              .prepare = {prepare_layer_norm_grad_cpu}};

Tensor layer_norm(const Tensor& x_in, const Tensor& gamma_in, const Tensor& beta_in,
                  double eps) {
  const Tensor x = contiguous(x_in);
  const Tensor gamma = contiguous(gamma_in);
  const Tensor beta = contiguous(beta_in);
  const LayerNormAttrs attrs{eps};
  std::vector<Tensor> outputs = dispatch(kLayerNorm, {x, gamma, beta}, attrs);
  if (needs_grad({x, gamma, beta})) {
    record("layer_norm", {x, gamma, beta}, {outputs.data(), 1},
           [attrs, x_ = Saved(x), gamma_ = Saved(gamma), mean = Saved(outputs[1]),
            rstd = Saved(outputs[2])](auto gys, auto grads, auto wanted) {
             std::vector<Tensor> made = dispatch(
                 kLayerNormGrad,
                 {x_.get(), contiguous(gys[0]), gamma_.get(), mean.get(), rstd.get()}, attrs);
             for (size_t i = 0; i < made.size(); ++i) {
               if (wanted[i]) grads[i] = made[i];
             }
           });
  }
  return outputs[0];
}

}  // namespace tidemark
