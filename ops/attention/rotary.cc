#include "ops/attention/rotary.h"

#include "ops/attention/rotary_kernels.h"
#include "ops/attention/rows.h"
#include "ops/autograd/autograd.h"
#include "ops/kernels/signature.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"

namespace tidemark {
namespace {

constexpr const char* kName = "rotary";

std::vector<TensorMeta> infer(const OpQuery& query) {
  check_fits(kName, query, query.inputs.size() == 3, "takes 3 inputs");
  const DType dtype = check_float(kName, query, 0);
  check_dtype(kName, query, 1, DType::kFloat32);
  check_dtype(kName, query, 2, DType::kFloat32);
  const TensorMeta& x = query.inputs[0];
  const Shape& table = query.inputs[1].shape;
  check_fits(kName, query, x.shape.rank() == 4 && x.shape[3] % 2 == 0,
             "x must be (B, T, H, D) with an even D");
  check_fits(kName, query, x.shape.elements() > 0, "x is empty");
  check_fits(kName, query, attention::has_rows(x), "x must have contiguous rows");
  const Shape shared{x.shape[1], x.shape[3] / 2};
  const Shape own{x.shape[0], x.shape[1], x.shape[3] / 2};
  check_fits(kName, query, (table == shared || table == own) && table == query.inputs[2].shape,
             "cos and sin must both be (T, D/2) or (B, T, D/2)");
  check_fits(kName, query, query.inputs[1].is_contiguous() && query.inputs[2].is_contiguous(),
             "cos and sin must be contiguous");
  return {TensorMeta::contiguous(dtype, x.shape)};
}

// Four products and two sums for each pair.
OpCost cost(const OpQuery& query) { return streaming_cost(query, 3); }

Tensor turn(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  return dispatch1(kRotary, {attention::with_rows(x), cos, sin}, RotaryAttrs{inverse});
}

}  // namespace

// Both elements of a pair are read before either is written.
const OpDef kRotary = {.name = kName,
                       .infer = infer,
                       .cost = cost,
                       .may_overwrite = 0b1,
                       .prepare = {attention::prepare_rotary_cpu}};

Tensor rotary(const Tensor& x, const Tensor& cos_in, const Tensor& sin_in) {
  const Tensor cos = contiguous(cos_in), sin = contiguous(sin_in);
  Tensor y = turn(x, cos, sin, false);
  if (!needs_grad({x})) return y;
  record("rotary", {x}, {&y, 1},
         [cos_ = Saved(cos), sin_ = Saved(sin)](auto g, auto grads, auto) {
           grads[0] = turn(g[0], cos_.get(), sin_.get(), true);
         });
  return y;
}

}  // namespace tidemark
