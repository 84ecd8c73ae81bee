#include "ops/view/view.h"

#include <utility>

#include "ops/autograd/autograd.h"
#include "ops/kernels/signature.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"
#include "ops/view/contiguous.h"
#include "ops/view/kernels.h"

namespace tidemark {
namespace {

std::vector<TensorMeta> infer_narrow_grad(const OpQuery& query) {
  require_inputs(query, "narrow_grad", 1);
  const DType dtype = require_floats(query, "narrow_grad", 0, 1);
  const auto& attrs = query.attr<view::NarrowGradAttrs>();
  Shape shape = query.inputs[0].shape;
  shape[static_cast<size_t>(attrs.dimension)] = attrs.extent;
  return {TensorMeta::contiguous(dtype, shape)};
}

OpCost narrow_grad_cost(const OpQuery& query) { return streaming_cost(query, 0); }

template <class Reverse>
Tensor recorded(const char* name, const Tensor& x, const TensorMeta& meta, Reverse reverse) {
  Tensor y = x.view(meta);
  if (!needs_grad({x})) return y;
  record(name, {x}, {&y, 1}, [reverse = std::move(reverse)](auto g, auto grads, auto) {
    grads[0] = reverse(g[0]);
  });
  return y;
}

Shape without(const Shape& shape, size_t gone) {
  Shape rest;
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (d != gone) rest.push_back(shape[d]);
  }
  return rest;
}

Shape with(const Shape& shape, size_t at, int64_t extent) {
  Shape more;
  for (size_t d = 0; d <= shape.rank(); ++d) {
    if (d == at) more.push_back(extent);
    if (d < shape.rank()) more.push_back(shape[d]);
  }
  return more;
}

// `shape` with its -1 filled in.
Shape complete(const Tensor& x, const Shape& wanted) {
  Shape shape = wanted;
  int64_t known = 1;
  size_t unknown = shape.rank();
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] == -1 && unknown == shape.rank()) {
      unknown = d;
    } else {
      known *= shape[d];
    }
  }
  if (unknown < shape.rank() && known > 0) shape[unknown] = x.elements() / known;
  for (int64_t extent : shape) {
    if (extent < 0) fail("reshape", "not a shape: " + wanted.to_string());
  }
  if (shape.elements() != x.elements()) {
    fail("reshape",
         "the " + std::to_string(x.elements()) + " elements of shape " + x.shape().to_string() +
             " cannot be arranged as " + wanted.to_string() +
             (unknown < shape.rank() ? ": they are not a multiple of " + std::to_string(known)
                                     : ", which has " + std::to_string(shape.elements())));
  }
  return shape;
}

}  // namespace

const OpDef kNarrowGrad = define_op("narrow_grad", infer_narrow_grad, narrow_grad_cost,
                                    view::prepare_narrow_grad_cpu);

Tensor reshape(const Tensor& x, const Shape& shape) {
  const Shape whole = complete(x, shape);
  if (whole == x.shape()) return x;
  const Tensor from = x.meta().is_contiguous() ? x : contiguous(x);
  const TensorMeta meta{x.dtype(), whole, contiguous_strides(whole), from.meta().offset};
  return recorded("reshape", from, meta,
                  [before = x.shape()](const Tensor& g) { return reshape(g, before); });
}

Tensor flatten(const Tensor& x, int64_t start) {
  if (x.shape().rank() == 0) return reshape(x, {1});
  const size_t first = dimension("flatten", start, x.shape());
  Shape shape(std::span(x.shape().begin(), first));
  shape.push_back(Shape(std::span(x.shape().begin() + first, x.shape().end())).elements());
  return reshape(x, shape);
}

Tensor transpose(const Tensor& x, int64_t a, int64_t b) {
  const size_t i = dimension("transpose", a, x.shape());
  const size_t j = dimension("transpose", b, x.shape());
  TensorMeta meta = x.meta();
  std::swap(meta.shape[i], meta.shape[j]);
  std::swap(meta.strides[i], meta.strides[j]);
  return recorded("transpose", x, meta, [a, b](const Tensor& g) { return transpose(g, a, b); });
}

Tensor permute(const Tensor& x, std::initializer_list<int64_t> dims) {
  const size_t rank = x.shape().rank();
  if (dims.size() != rank) {
    fail("permute",
         std::to_string(dims.size()) + " dimensions for shape " + x.shape().to_string());
  }
  TensorMeta meta = x.meta();
  std::array<size_t, kMaxRank> back{};
  uint32_t seen = 0;
  size_t to = 0;
  for (int64_t d : dims) {
    const size_t from = dimension("permute", d, x.shape());
    if (seen >> from & 1) fail("permute", "dimension " + std::to_string(d) + " appears twice");
    seen |= 1u << from;
    meta.shape[to] = x.shape()[from];
    meta.strides[to] = x.meta().strides[from];
    back[from] = to++;
  }
  return recorded("permute", x, meta, [back, rank](const Tensor& g) {
    TensorMeta reverse = g.meta();
    for (size_t d = 0; d < rank; ++d) {
      reverse.shape[d] = g.shape()[back[d]];
      reverse.strides[d] = g.meta().strides[back[d]];
    }
    return g.view(reverse);
  });
}

Tensor narrow(const Tensor& x, int64_t d, int64_t start, int64_t length) {
  const size_t at = dimension("narrow", d, x.shape());
  const int64_t extent = x.extent(at);
  if (start < 0 || length < 0 || length > extent || start > extent - length) {
    fail("narrow", "elements " + std::to_string(start) + " to " +
                       std::to_string(start + length) + " of dimension " + std::to_string(d) +
                       " of shape " + x.shape().to_string() + " do not exist");
  }
  TensorMeta meta = x.meta();
  meta.shape[at] = length;
  meta.offset += start * meta.strides[at];
  const view::NarrowGradAttrs attrs{static_cast<int64_t>(at), start, extent};
  return recorded("narrow", x, meta,
                  [attrs](const Tensor& g) { return dispatch1(kNarrowGrad, {g}, attrs); });
}

Tensor expand(const Tensor& x, const Shape& shape) {
  if (!(broadcast("expand", x.shape(), shape) == shape)) {
    fail("expand",
         "shape " + x.shape().to_string() + " does not broadcast to " + shape.to_string());
  }
  TensorMeta meta{x.dtype(), shape, shape, x.meta().offset};
  const size_t lead = shape.rank() - x.shape().rank();
  for (size_t d = 0; d < shape.rank(); ++d) {
    const bool repeated = d < lead || (x.extent(d - lead) == 1 && shape[d] != 1);
    meta.strides[d] = repeated ? 0 : x.meta().strides[d - lead];
  }
  return recorded("expand", x, meta,
                  [before = x.shape()](const Tensor& g) { return sum_to(g, before); });
}

Tensor squeeze(const Tensor& x, int64_t d) {
  const size_t at = dimension("squeeze", d, x.shape());
  if (x.extent(at) != 1) {
    fail("squeeze",
         "dimension " + std::to_string(d) + " of shape " + x.shape().to_string() + " is not 1");
  }
  const TensorMeta meta{x.dtype(), without(x.shape(), at), without(x.meta().strides, at),
                        x.meta().offset};
  return recorded("squeeze", x, meta,
                  [at](const Tensor& g) { return unsqueeze(g, static_cast<int64_t>(at)); });
}

Tensor unsqueeze(const Tensor& x, int64_t d) {
  const int64_t rank = static_cast<int64_t>(x.shape().rank());
  if (d < -rank - 1 || d > rank) {
    fail("unsqueeze", "no position " + std::to_string(d) + " for a new dimension in shape " +
                          x.shape().to_string());
  }
  const size_t at = static_cast<size_t>(d < 0 ? d + rank + 1 : d);
  const TensorMeta meta{x.dtype(), with(x.shape(), at, 1), with(x.meta().strides, at, 1),
                        x.meta().offset};
  return recorded("unsqueeze", x, meta,
                  [at](const Tensor& g) { return squeeze(g, static_cast<int64_t>(at)); });
}

}  // namespace tidemark
