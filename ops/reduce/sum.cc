#include "ops/autograd/autograd.h"
#include "ops/kernels/signature.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

using reduce::SumAttrs;

bool summed(const SumAttrs& attrs, size_t d) { return attrs.dims >> d & 1; }

std::vector<TensorMeta> infer_sum(const OpQuery& query) {
  require_inputs(query, "sum", 1);
  require_floats(query, "sum", 0, 1);
  const auto& attrs = query.attr<SumAttrs>();
  const Shape& x = query.inputs[0].shape;
  Shape y;
  for (size_t d = 0; d < x.rank(); ++d) {
    if (!summed(attrs, d)) {
      y.push_back(x[d]);
    } else if (attrs.keep) {
      y.push_back(1);
    }
  }
  return {TensorMeta::contiguous(static_cast<DType>(attrs.to), y)};
}

int64_t number(DType dtype) { return static_cast<int64_t>(dtype); }

OpCost cost(const OpQuery& query) { return streaming_cost(query, 1); }

Tensor scaled_sum(const char* name, const Tensor& x, const SumAttrs& attrs, double factor) {
  Tensor y = dispatch1(kSum, {x}, attrs, {factor});
  if (!needs_grad({x})) return y;
  record(name, {x}, {&y, 1}, [meta_of_x = x.meta(), attrs, factor](auto g, auto grads, auto) {
    const Shape& shape = meta_of_x.shape;
    const bool as_it_is = factor == 1 && g[0].dtype() == meta_of_x.dtype;
    const Tensor scaled =
        as_it_is ? g[0]
                 : dispatch1(kSum, {g[0]}, SumAttrs{0, 0, number(meta_of_x.dtype)}, {factor});
    TensorMeta meta{scaled.dtype(), shape, shape, scaled.meta().offset};
    size_t from = 0;  // dimension of g
    for (size_t d = 0; d < shape.rank(); ++d) {
      meta.strides[d] = summed(attrs, d) ? 0 : scaled.meta().strides[from];
      if (!summed(attrs, d) || attrs.keep) ++from;
    }
    grads[0] = scaled.view(meta);
  });
  return y;
}

SumAttrs over_all(const Tensor& x) { return {(int64_t{1} << x.shape().rank()) - 1, 0}; }

SumAttrs over(const char* op, const Tensor& x, std::initializer_list<int64_t> dims, bool keep) {
  SumAttrs attrs{0, keep};
  for (int64_t d : dims) {
    const int64_t bit = int64_t{1} << dimension(op, d, x.shape());
    if (attrs.dims & bit) fail(op, "dimension " + std::to_string(d) + " appears twice");
    attrs.dims |= bit;
  }
  return attrs;
}

double inverse_count(const Tensor& x, const SumAttrs& attrs) {
  double count = 1;
  for (size_t d = 0; d < x.shape().rank(); ++d) {
    if (summed(attrs, d)) count *= static_cast<double>(x.extent(d));
  }
  return 1 / count;
}

}  // namespace

const OpDef kSum = define_op("sum", infer_sum, cost, reduce::prepare_sum_cpu);

Tensor sum(const Tensor& x) { return scaled_sum("sum", x, over_all(x), 1); }

Tensor sum(const Tensor& x, std::initializer_list<int64_t> dims, bool keep) {
  return scaled_sum("sum", x, over("sum", x, dims, keep), 1);
}

Tensor mean(const Tensor& x) {
  return scaled_sum("mean", x, over_all(x), inverse_count(x, over_all(x)));
}

Tensor mean(const Tensor& x, std::initializer_list<int64_t> dims, bool keep) {
  const SumAttrs attrs = over("mean", x, dims, keep);
  return scaled_sum("mean", x, attrs, inverse_count(x, attrs));
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (!(broadcast("sum_to", x.shape(), shape) == x.shape())) {
    fail("sum_to",
         "shape " + shape.to_string() + " does not broadcast to " + x.shape().to_string());
  }
  // Dimensions that `shape` lacks are removed; those where it has 1 stay.
  const size_t lead = x.shape().rank() - shape.rank();
  SumAttrs missing{(int64_t{1} << lead) - 1, 0}, repeated{0, 1};
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1 && x.extent(lead + d) != 1) repeated.dims |= int64_t{1} << (lead + d);
  }
  missing.to = repeated.to = number(x.dtype());
  if (repeated.dims == 0) return scaled_sum("sum", x, missing, 1);
  // Sums over both at once and keeps all dimensions; then a view drops the leading ones.
  repeated.dims |= missing.dims;
  Tensor y = scaled_sum("sum", x, repeated, 1);
  if (lead == 0) return y;
  Tensor view = y.view({y.dtype(), shape, contiguous_strides(shape), y.meta().offset});
  record("reshape", {y}, {&view, 1}, [meta = y.meta()](auto g, auto grads, auto) {
    Shape strides;
    const size_t added = meta.shape.rank() - g[0].shape().rank();
    for (size_t d = 0; d < added; ++d) strides.push_back(0);
    for (int64_t stride : g[0].meta().strides) strides.push_back(stride);
    grads[0] = g[0].view({meta.dtype, meta.shape, strides, g[0].meta().offset});
  });
  return view;
}

}  // namespace tidemark
