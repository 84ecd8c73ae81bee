#include "ops/create/create.h"

#include "ops/create/kernels.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

std::vector<TensorMeta> infer_fill(const OpQuery& query) {
  require_inputs(query, "fill", 0);
  const auto& attrs = query.attr<create::FillAttrs>();
  const DType dtype = static_cast<DType>(attrs.dtype);
  require(dtype != DType::kFloat16, "fill", "no kernel for this type");
  const Shape shape = attrs.shape.shape();
  for (int64_t extent : shape) {
    if (extent < 0) fail("fill", "a negative extent in shape " + shape.to_string());
  }
  return {TensorMeta::contiguous(dtype, shape)};
}

std::vector<TensorMeta> infer_arange(const OpQuery& query) {
  require_inputs(query, "arange", 0);
  const int64_t count = query.attr<create::ArangeAttrs>().count;
  if (count < 0) fail("arange", "a negative extent in shape " + Shape{count}.to_string());
  return {TensorMeta::contiguous(DType::kInt64, {count})};
}

OpCost cost(const OpQuery& query) { return streaming_cost(query, 0); }

}  // namespace

const OpDef kFill = define_op("fill", infer_fill, cost, create::prepare_fill_cpu);
const OpDef kArange =
    define_op("arange", infer_arange, cost, simple_kernel<create::arange_cpu>);

Tensor full(const Shape& shape, double value, DType dtype) {
  const create::FillAttrs attrs{ShapeAttrs(shape), static_cast<int64_t>(dtype)};
  return dispatch1(kFill, {}, attrs, {value});
}

Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }

Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Tensor arange(int64_t n) { return dispatch1(kArange, {}, create::ArangeAttrs{n}); }

}  // namespace tidemark
