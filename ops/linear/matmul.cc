#include "ops/linear/matmul.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ops/autograd/autograd.h"
#include "ops/linear/gemm_shape.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"

namespace tidemark {
namespace {

std::vector<TensorMeta> infer(const OpQuery& query) {
  const bool bias = query.inputs.size() == 3;
  if (query.inputs.size() != 2 && !bias) throw_misfit("matmul", query, "takes 2 or 3 inputs");
  const DType dtype = check_float("matmul", query, 0);
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    const TensorMeta& input = query.inputs[i];
    const std::string which = "input " + std::to_string(i);
    check_dtype("matmul", query, i, i < 2 ? dtype : DType::kFloat32);
    if (input.shape.elements() == 0) throw_misfit("matmul", query, which + " is empty");
    if (i < 2 && input.shape.rank() < 2) {
      throw_misfit("matmul", query, which + " must have 2 dimensions or more");
    }
    const bool lies = i < 2 ? MatrixLayout(input).fits : input.is_contiguous();
    if (!lies) throw_misfit("matmul", query, which + " must be contiguous in one dimension");
  }
  const auto& attrs = query.attr<MatmulAttrs>();
  const Shape& a = query.inputs[0].shape;
  const Shape& b = query.inputs[1].shape;
  const size_t rank = a.rank(), row = rank - 2, column = rank - 1;
  check_fits("matmul", query,
             b.rank() == rank && std::equal(a.begin(), a.begin() + row, b.begin()),
             "the dimensions before the last two must be the same");
  const int64_t columns = a[attrs.transpose_a ? row : column];
  const int64_t rows = b[attrs.transpose_b ? column : row];
  if (columns != rows) {
    throw_misfit("matmul", query,
                 "the first matrix" + std::string(attrs.transpose_a ? ", transposed," : "") +
                     " has " + std::to_string(columns) + " columns, but the second" +
                     (attrs.transpose_b ? ", transposed," : "") + " has " +
                     std::to_string(rows) + " rows");
  }
  Shape y = a;
  y[row] = a[attrs.transpose_a ? column : row];
  y[column] = b[attrs.transpose_b ? row : column];
  check_fits("matmul", query, !bias || query.inputs[2].shape == Shape{y[column]},
             "the bias must have one element for each column of the product");
  return {TensorMeta::contiguous(dtype, y)};
}

OpCost cost(const OpQuery& query) {
  const Shape& a = query.inputs[0].shape;
  const int64_t depth = a[a.rank() - (query.attr<MatmulAttrs>().transpose_a ? 2 : 1)];
  return {.flops = 2.0 * static_cast<double>(query.outputs[0].shape.elements()) *
                   static_cast<double>(depth),
          .bytes_moved = bytes_moved(query),
          .matrix = true,
          .bfloat16 = query.inputs[0].dtype == DType::kBFloat16};
}

Tensor product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  return dispatch1(kMatmul, {a, b}, MatmulAttrs{transpose_a, transpose_b});
}

// x, or a copy if a product cannot read it in place.
Tensor as_matrices(const Tensor& x) {
  return x.shape().rank() < 2 || MatrixLayout(x.meta()).fits ? x : contiguous(x);
}

}  // namespace

// GPU libraries multiply matrices without workspace, so none is modelled (apart from the few
// bytes of a bias rounded to bfloat16).
const OpDef kMatmul = define_op("matmul", infer, cost, prepare_matmul_cpu);

Tensor matmul(const Tensor& a_in, const Tensor& b_in, bool transpose_a, bool transpose_b,
              const Tensor& bias) {
  const Tensor a = as_matrices(a_in);
  const Tensor b = as_matrices(b_in);
  const MatmulAttrs attrs{transpose_a, transpose_b};
  Tensor y = bias.defined() ? dispatch1(kMatmul, {a, b, contiguous(bias)}, attrs)
                            : dispatch1(kMatmul, {a, b}, attrs);
  Saved saved_a = needs_grad({b}) ? Saved(a) : Saved();
  Saved saved_b = needs_grad({a}) ? Saved(b) : Saved();
  record("matmul", {a, b, bias}, std::span(&y, 1),
         [=](std::span<const Tensor> gys, std::span<Tensor> grads,
             std::span<const bool> wanted) mutable {
           const Tensor gy = as_matrices(gys[0]);
           if (wanted[2]) grads[2] = sum(reshape(gy, {-1, gy.shape().back()}), {0});
           // b's gradient comes first, as b is usually a weight: a may then be freed before its
           // own gradient, which is as large, is allocated.
           if (wanted[1]) {
             const Tensor saved = std::exchange(saved_a, {}).get();
             grads[1] = transpose_b ? product(gy, saved, true, transpose_a)
                                    : product(saved, gy, !transpose_a, false);
           }
           if (wanted[0]) {
             grads[0] = transpose_a ? product(saved_b.get(), gy, transpose_b, true)
                                    : product(gy, saved_b.get(), false, !transpose_b);
           }
         });
  return y;
}

}  // namespace tidemark
