#include "ops/view/contiguous.h"

#include <string>

#include "ops/autograd/autograd.h"
#include "ops/create/create.h"
#include "ops/kernels/signature.h"
#include "ops/registry/dispatch.h"
#include "ops/view/kernels.h"
#include "ops/view/view.h"

namespace tidemark {
namespace {

std::vector<TensorMeta> infer_copy(const OpQuery& query) {
  require_inputs(query, "copy", 1);
  return {TensorMeta::contiguous(query.inputs[0].dtype, query.inputs[0].shape)};
}

std::vector<TensorMeta> infer_concat(const OpQuery& query) {
  require(!query.inputs.empty(), "concat", "there are no tensors");
  const size_t d = static_cast<size_t>(query.attr<view::ConcatAttrs>().dimension);
  Shape whole = query.inputs[0].shape;
  whole[d] = 0;
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    require_dtype(query, "concat", i, query.inputs[0].dtype);
    const Shape& part = query.inputs[i].shape;
    Shape expected = whole;
    if (part.rank() == whole.rank()) expected[d] = part[d];
    if (!(part == expected)) {
      fail("concat", "shapes " + query.inputs[0].shape.to_string() + " and " +
                         part.to_string() + " differ in more than dimension " +
                         std::to_string(d));
    }
    whole[d] += part[d];
  }
  return {TensorMeta::contiguous(query.inputs[0].dtype, whole)};
}

OpCost cost(const OpQuery& query) { return streaming_cost(query, 0); }

}  // namespace

const OpDef kCopy = define_op("copy", infer_copy, cost, view::prepare_copy_cpu);
const OpDef kConcat = define_op("concat", infer_concat, cost, view::prepare_concat_cpu);

Tensor contiguous(const Tensor& x) {
  const int64_t start = x.meta().offset * size_of(x.dtype()).count();
  if (x.meta().is_contiguous() && start % 64 == 0) return x;
  Tensor y = dispatch1(kCopy, {x});
  if (!needs_grad({x})) return y;
  record("copy", {x}, {&y, 1}, [](auto g, auto grads, auto) { grads[0] = g[0]; });
  return y;
}

Tensor concat(std::initializer_list<Tensor> tensors, int64_t d) {
  require(tensors.size() > 0, "concat", "there are no tensors");
  const int64_t at = static_cast<int64_t>(dimension("concat", d, tensors.begin()->shape()));
  Tensor y = dispatch1(kConcat, tensors, view::ConcatAttrs{at});
  std::vector<int64_t> lengths;
  for (const Tensor& part : tensors) lengths.push_back(part.extent(static_cast<size_t>(at)));
  record("concat", tensors, {&y, 1}, [lengths, at](auto g, auto grads, auto wanted) {
    int64_t start = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (wanted[i]) grads[i] = narrow(g[0], at, start, lengths[i]);
      start += lengths[i];
    }
  });
  return y;
}

std::vector<Tensor> split(const Tensor& x, int64_t d, int64_t parts) {
  const size_t at = dimension("split", d, x.shape());
  if (parts < 1 || x.extent(at) % parts != 0) {
    fail("split", "dimension " + std::to_string(at) + " of shape " + x.shape().to_string() +
                      " does not have " + std::to_string(parts) + " equal parts");
  }
  TensorMeta meta = x.meta();
  meta.shape[at] /= parts;
  std::vector<Tensor> views;
  for (int64_t i = 0; i < parts; ++i) {
    views.push_back(x.view(meta));
    meta.offset += meta.shape[at] * meta.strides[at];
  }
  record("split", {x}, views,
         [at = static_cast<int64_t>(at), part = meta.shape, dtype = x.dtype()](
             auto g, auto grads, auto) {
           std::vector<Tensor> all(g.begin(), g.end());
           for (Tensor& each : all) {
             if (!each.defined()) each = zeros(part, dtype);
           }
           grads[0] = dispatch(kConcat, all, view::ConcatAttrs{at}).front();
         });
  return views;
}

}  // namespace tidemark
