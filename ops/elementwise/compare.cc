#include "ops/elementwise/compare.h"

#include "ops/autograd/autograd.h"
#include "ops/elementwise/functors.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/signature.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

struct CastAttrs {
  int64_t to;
};

bool has_kernels(DType dtype) { return dtype != DType::kFloat16; }

bool is_float(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kBFloat16; }

template <const OpDef* op>
std::vector<TensorMeta> infer_comparison(const OpQuery& query) {
  require_inputs(query, op->name, 2);
  require_dtype(query, op->name, 1, query.inputs[0].dtype);
  require(has_kernels(query.inputs[0].dtype), op->name, "no kernel for this type");
  return {TensorMeta::contiguous(
      DType::kBool, broadcast(op->name, query.inputs[0].shape, query.inputs[1].shape))};
}

std::vector<TensorMeta> infer_where(const OpQuery& query) {
  require_inputs(query, "where", 3);
  require_dtype(query, "where", 0, DType::kBool);
  require_dtype(query, "where", 1, DType::kFloat32);
  require_dtype(query, "where", 2, DType::kFloat32);
  const Shape both = broadcast("where", query.inputs[1].shape, query.inputs[2].shape);
  return {
      TensorMeta::contiguous(DType::kFloat32, broadcast("where", query.inputs[0].shape, both))};
}

// condition, g -> of g's shape
template <const OpDef* op>
std::vector<TensorMeta> infer_where_grad(const OpQuery& query) {
  require_inputs(query, op->name, 2);
  require_dtype(query, op->name, 0, DType::kBool);
  require_dtype(query, op->name, 1, DType::kFloat32);
  return {TensorMeta::contiguous(DType::kFloat32, query.inputs[1].shape)};
}

std::vector<TensorMeta> infer_cast(const OpQuery& query) {
  require_inputs(query, "cast", 1);
  const DType to = static_cast<DType>(query.attr<CastAttrs>().to);
  require(has_kernels(query.inputs[0].dtype) && has_kernels(to), "cast",
          "no kernel for this pair of types");
  return {TensorMeta::contiguous(to, query.inputs[0].shape)};
}

OpCost cost(const OpQuery& query) { return streaming_cost(query, 1); }

template <class F>
PreparedKernel prepare_comparison(const OpQuery& query) {
  return visit_dtype(query.inputs[0].dtype,
                     [&]<class T>(TypeTag<T>) { return map_cpu<F, bool, T, T>(query); });
}

PreparedKernel prepare_cast(const OpQuery& query) {
  return visit_dtype(query.inputs[0].dtype, [&]<class From>(TypeTag<From>) {
    return visit_dtype(query.outputs[0].dtype, [&]<class To>(TypeTag<To>) {
      return map_cpu<Cast<To>, To, From>(query);
    });
  });
}

}  // namespace

const OpDef kEq = define_op("eq", infer_comparison<&kEq>, cost, prepare_comparison<Equal>);
const OpDef kGt = define_op("gt", infer_comparison<&kGt>, cost, prepare_comparison<Greater>);
const OpDef kWhere = {.name = "where",
                      .infer = infer_where,
                      .cost = cost,
                      .may_overwrite = 0b110,
                      .prepare = {map_cpu<Select, float, bool, float, float>}};
const OpDef kWhereGrad = {.name = "where_grad",
                          .infer = infer_where_grad<&kWhereGrad>,
                          .cost = cost,
                          .may_overwrite = 0b10,
                          .prepare = {map_cpu<SelectGrad, float, bool, float>}};
const OpDef kWhereOtherGrad = {.name = "where_other_grad",
                               .infer = infer_where_grad<&kWhereOtherGrad>,
                               .cost = cost,
                               .may_overwrite = 0b10,
                               .prepare = {map_cpu<SelectOtherGrad, float, bool, float>}};
const OpDef kCast = define_op("cast", infer_cast, cost, prepare_cast);

Tensor eq(const Tensor& a, const Tensor& b) { return dispatch1(kEq, {a, b}); }

Tensor gt(const Tensor& a, const Tensor& b) { return dispatch1(kGt, {a, b}); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  Tensor y = dispatch1(kWhere, {condition, a, b});
  if (!needs_grad({a, b})) return y;
  record(
      "where", {a, b}, {&y, 1},
      [as = a.shape(), bs = b.shape(), c = Saved(condition)](auto g, auto grads, auto wanted) {
        if (wanted[0]) grads[0] = sum_to(dispatch1(kWhereGrad, {c.get(), g[0]}), as);
        if (wanted[1]) grads[1] = sum_to(dispatch1(kWhereOtherGrad, {c.get(), g[0]}), bs);
      });
  return y;
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = dispatch1(kCast, {x}, CastAttrs{static_cast<int64_t>(dtype)});
  if (!is_float(dtype) || !needs_grad({x})) return y;
  record("cast", {x}, {&y, 1},
         [from = x.dtype()](auto g, auto grads, auto) { grads[0] = cast(g[0], from); });
  return y;
}

}  // namespace tidemark
