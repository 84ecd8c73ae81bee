#include "ops/linear/matmul.h"

#include "ops/autograd/autograd.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

std::vector<TensorMeta> infer(const OpQuery& query) {
  const bool bias = query.inputs.size() == 3;
  if (bias) {
    check_float32("matmul", query, {2, 2, 1});
  } else {
    check_float32("matmul", query, {2, 2});
  }
  const auto& attrs = query.attr<MatmulAttrs>();
  const Shape& a = query.inputs[0].shape;
  const Shape& b = query.inputs[1].shape;
  const int64_t m = a[attrs.transpose_a ? 1 : 0], n = b[attrs.transpose_b ? 0 : 1];
  const bool fits = a[attrs.transpose_a ? 0 : 1] == b[attrs.transpose_b ? 1 : 0];
  if (!fits) {
    throw_misfit("matmul", query,
                 std::string("the matrices") +
                     (attrs.transpose_a ? ", the first transposed" : "") +
                     (attrs.transpose_b ? ", the second transposed" : "") +
                     ", do not have a dimension in common");
  }
  check_fits("matmul", query, !bias || query.inputs[2].shape[0] == n,
             "the bias must have one element for each column of the product");
  return {TensorMeta::contiguous(DType::kFloat32, {m, n})};
}

OpCost cost(const OpQuery& query) {
  const Shape& a = query.inputs[0].shape;
  const int64_t depth = a[query.attr<MatmulAttrs>().transpose_a ? 0 : 1];
  return {.flops = 2.0 * static_cast<double>(query.outputs[0].shape.elements()) *
                   static_cast<double>(depth),
          .bytes_moved = bytes_moved(query),
          .matrix = true};
}

Tensor product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  return dispatch1(kMatmul, {a, b}, MatmulAttrs{transpose_a, transpose_b});
}

}  // namespace

// GPU libraries multiply matrices without workspace, hence no modelled one.
const OpDef kMatmul{.name = "matmul",
                    .infer = infer,
                    .cost = cost,
                    .prepare = {prepare_matmul_cpu, nullptr, nullptr}};

Tensor matmul(const Tensor& a_in, const Tensor& b_in, bool ta, bool tb, const Tensor& bias) {
  const Tensor a = contiguous(a_in);
  const Tensor b = contiguous(b_in);
  const MatmulAttrs attrs{ta, tb};
  Tensor y = bias.defined() ? dispatch1(kMatmul, {a, b, contiguous(bias)}, attrs)
                            : dispatch1(kMatmul, {a, b}, attrs);
  Saved saved_a = needs_grad({b}) ? Saved(a) : Saved();
  Saved saved_b = needs_grad({a}) ? Saved(b) : Saved();
  record(
      "matmul", {a, b, bias}, std::span(&y, 1),
      [=](std::span<const Tensor> gys, std::span<Tensor> grads, std::span<const bool> wanted) {
        const Tensor gy = contiguous(gys[0]);
        if (wanted[0]) {
          grads[0] = ta ? product(saved_b.get(), gy, tb, true)
                        : product(gy, saved_b.get(), false, !tb);
        }
        if (wanted[1]) {
          grads[1] = tb ? product(gy, saved_a.get(), true, ta)
                        : product(saved_a.get(), gy, !ta, false);
        }
        if (wanted[2]) grads[2] = sum(gy, {0});
      });
  return y;
}

}  // namespace tidemark
