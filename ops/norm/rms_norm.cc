#include "ops/norm/rms_norm.h"

#include "ops/autograd/autograd.h"
#include "ops/kernels/column_tiles.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

TensorMeta float32(const Shape& shape) {
  return TensorMeta::contiguous(DType::kFloat32, shape);
}

Shape rows_of(const Shape& x) { return Shape(std::span(x.begin(), x.rank() - 1)); }

void check_rows(const char* op, const OpQuery& query, const Shape& weight) {
  const Shape& x = query.inputs[0].shape;
  check_fits(op, query, x.rank() >= 1, "a scalar has no last dimension");
  check_fits(op, query, weight[0] == x.back(),
             "the weight must have the length of the last dimension");
}

std::vector<TensorMeta> infer_rms_norm(const OpQuery& query) {
  constexpr const char* kName = "rms_norm";
  const DType dtype = check_floats(kName, query, {kAnyRank, 1}, 0b1);
  const Shape& x = query.inputs[0].shape;
  check_rows(kName, query, query.inputs[1].shape);
  check_fits(kName, query, query.attr<RmsNormAttrs>().eps >= 0, "eps must not be negative");
  return {TensorMeta::contiguous(dtype, x), float32(rows_of(x))};
}

std::vector<TensorMeta> infer_rms_norm_grad(const OpQuery& query) {
  constexpr const char* kName = "rms_norm_grad";
  const DType dtype = check_floats(kName, query, {kAnyRank, kAnyRank, 1, kAnyRank}, 0b11);
  const Shape& x = query.inputs[0].shape;
  check_rows(kName, query, query.inputs[2].shape);
  check_fits(kName, query, query.inputs[1].shape == x,
             "the output's gradient must have the input's shape");
  check_fits(kName, query, query.inputs[3].shape == rows_of(x),
             "there must be one rstd for each row");
  std::vector<TensorMeta> outputs{TensorMeta::contiguous(dtype, x)};
  if (!query.attr<RmsNormGradAttrs>().frozen) outputs.push_back(float32({x.back()}));
  return outputs;
}

OpCost cost_per_element(const OpQuery& query, int flops) {
  const double elements = static_cast<double>(query.inputs[0].shape.elements());
  return {.flops = flops * elements, .bytes_moved = bytes_moved(query)};
}

// Two operations per element for the mean square, two for y.
OpCost cost(const OpQuery& query) { return cost_per_element(query, 4); }

// Four for the sum over the row, four for gx, two for the weight.
OpCost cost_grad(const OpQuery& query) {
  return cost_per_element(query, query.attr<RmsNormGradAttrs>().frozen ? 8 : 10);
}

// The CUDA kernels' partial sums: a float64 per column and stretch of rows.
Bytes model_grad_workspace(const OpQuery& query) {
  if (query.attr<RmsNormGradAttrs>().frozen) return Bytes(0);
  const Shape& x = query.inputs[0].shape;
  const ColumnTiles tiles(x.elements() / x.back(), x.back());
  return Bytes(tiles.stretches * tiles.columns * 8);
}

}  // namespace

const OpDef kRmsNorm = define_op("rms_norm", infer_rms_norm, cost, prepare_rms_norm_cpu);
const OpDef kRmsNormGrad = {.name = "rms_norm_grad",
                            .infer = infer_rms_norm_grad,
                            .cost = cost_grad,
                            .modelled_workspace = model_grad_workspace,
                            .may_overwrite = 0b11,  // x and gy
                            .prepare = {prepare_rms_norm_grad_cpu}};

Tensor rms_norm(const Tensor& x_in, const Tensor& weight_in, double eps) {
  const Tensor x = contiguous(x_in), weight = contiguous(weight_in);
  std::vector<Tensor> outputs = dispatch(kRmsNorm, {x, weight}, RmsNormAttrs{eps});
  if (needs_grad({x, weight})) {
    record("rms_norm", {x, weight}, {outputs.data(), 1},
           [x_ = Saved(x), weight_ = Saved(weight), rstd = Saved(outputs[1])](
               auto gys, auto grads, auto wanted) {
             const RmsNormGradAttrs attrs{!wanted[1]};
             std::vector<Tensor> made =
                 dispatch(kRmsNormGrad,
                          {x_.get(), contiguous(gys[0]), weight_.get(), rstd.get()}, attrs);
             for (size_t i = 0; i < made.size(); ++i) {
               if (wanted[i]) grads[i] = std::move(made[i]);
             }
           });
  }
  return outputs[0];
}

}  // namespace tidemark
