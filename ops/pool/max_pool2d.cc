#include "ops/pool/max_pool2d.h"

#include "ops/autograd/autograd.h"
#include "ops/registry/dispatch.h"
#include "ops/registry/kernels.h"
#include "ops/registry/op_call.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

DType index_type(const Pool2dAttrs& attrs) {
  return attrs.window[0] * attrs.window[1] <= 256 ? DType::kUInt8 : DType::kInt32;
}

std::vector<TensorMeta> infer_max_pool2d(const OpQuery& query) {
  const DType dtype = check_floats("max_pool2d", query, {4}, 1);
  const auto& attrs = query.attr<Pool2dAttrs>();
  const Shape y = pooled_shape("max_pool2d", query, query.inputs[0].shape, attrs);
  return {TensorMeta::contiguous(dtype, y), TensorMeta::contiguous(index_type(attrs), y)};
}

std::vector<TensorMeta> infer_max_pool2d_grad(const OpQuery& query) {
  constexpr const char* kName = "max_pool2d_grad";
  const auto& attrs = query.attr<Pool2dGradAttrs>();
  check_fits(kName, query, query.inputs.size() == 2 && query.inputs[0].shape.rank() == 4,
             "takes the output's gradient (N, P, Q, C) and its index");
  const TensorMeta& gy = query.inputs[0];
  const TensorMeta& index = query.inputs[1];
  const DType dtype = check_float(kName, query, 0);
  check_fits(kName, query, gy.is_contiguous(), "the gradient must be contiguous");
  check_fits(
      kName, query,
      index.dtype == index_type(attrs.pool) && index.is_contiguous() && index.shape == gy.shape,
      "the index does not belong to the gradient");
  const Shape x{gy.shape[0], attrs.height, attrs.width, gy.shape[3]};
  check_fits(kName, query, pooled_shape(kName, query, x, attrs.pool) == gy.shape,
             "the output's gradient does not have the output's shape");
  return {TensorMeta::contiguous(dtype, x)};
}

std::vector<TensorMeta> infer_max_pool2d_grad_from_input(const OpQuery& query) {
  constexpr const char* kName = "max_pool2d_grad_from_input";
  const auto& attrs = query.attr<Pool2dGradAttrs>();
  const DType dtype = check_floats(kName, query, {4, 4}, 0b11);
  const Shape& gy = query.inputs[0].shape;
  const Shape& x = query.inputs[1].shape;
  check_fits(kName, query,
             x[1] == attrs.height && x[2] == attrs.width &&
                 pooled_shape(kName, query, x, attrs.pool) == gy,
             "the output's gradient does not have the output's shape");
  return {TensorMeta::contiguous(dtype, x)};
}

// y and index, which the workspace holds.
std::vector<TensorMeta> pooled(const OpQuery& query) {
  const TensorMeta& gy = query.inputs[0];
  const auto& pool = query.attr<Pool2dGradAttrs>().pool;
  return {TensorMeta::contiguous(gy.dtype, gy.shape),
          TensorMeta::contiguous(index_type(pool), gy.shape)};
}
Bytes workspace_from_input(const OpQuery& query) {
  const std::vector<TensorMeta> made = pooled(query);
  return align_up(made[0].bytes()) + made[1].bytes();
}

// The index came from x.
std::vector<OtherCall> other_grads(const OpCall& call) {
  const OpCall* const maker = call.maker(1);
  if (!maker || maker->body().op != &kMaxPool2d) return {};
  return {{kMaxPool2dGradFromInput, {call.input(0), maker->input(0)}, call.body().attrs}};
}

// One comparison, or addition, per cell of each window.
OpCost cost_of(const OpQuery& query, const Shape& y, const Pool2dAttrs& attrs) {
  return {.flops = static_cast<double>(y.elements()) *
                   static_cast<double>(attrs.window[0] * attrs.window[1]),
          .bytes_moved = bytes_moved(query)};
}
OpCost cost_max_pool2d(const OpQuery& query) {
  return cost_of(query, query.outputs[0].shape, query.attr<Pool2dAttrs>());
}
OpCost cost_max_pool2d_grad(const OpQuery& query) {
  return cost_of(query, query.inputs[0].shape, query.attr<Pool2dGradAttrs>().pool);
}
// Both operators, which write and read y and index.
OpCost cost_max_pool2d_grad_from_input(const OpQuery& query) {
  OpCost cost = cost_max_pool2d_grad(query);
  cost.flops *= 2;
  cost.bytes_moved += workspace_from_input(query) + pooled(query)[1].bytes();
  return cost;
}

PreparedKernel prepare_from_input_cpu(const OpQuery& query) {
  return prepare_max_pool2d_grad_from_input(query, Backend::kCpu);
}

}  // namespace

PreparedKernel prepare_max_pool2d_grad_from_input(const OpQuery& query, Backend backend) {
  struct Parts {
    std::vector<TensorMeta> x, made, gy_and_index, gx;
    Attrs pool, grad;
    PreparedKernel forward, backward;
  };
  const std::vector<TensorMeta> made = pooled(query);
  auto parts = std::make_shared<Parts>(Parts{{query.inputs[1]},
                                             made,
                                             {query.inputs[0], made[1]},
                                             {query.outputs[0]},
                                             query.attr<Pool2dGradAttrs>().pool,
                                             query.attrs,
                                             {},
                                             {}});
  parts->forward = find_kernel(
      kMaxPool2d, backend)({parts->x, parts->made, parts->pool, query.threads, query.tf32});
  parts->backward = find_kernel(kMaxPool2dGrad, backend)(
      {parts->gy_and_index, parts->gx, parts->grad, query.threads, query.tf32});
  TIDEMARK_CHECK(parts->forward.workspace + parts->backward.workspace == Bytes(0),
                 "max pooling needs no workspace");
  const int64_t index_at = align_up(made[0].bytes()).count();
  return {workspace_from_input(query), [parts, index_at](const KernelArgs& args) {
            std::byte* const x = args.inputs[1];
            std::byte* const made_at[] = {args.workspace, args.workspace + index_at};
            std::byte* const read[] = {args.inputs[0], made_at[1]};
            parts->forward.run({parts->x,
                                parts->made,
                                {&x, 1},
                                made_at,
                                nullptr,
                                parts->pool,
                                args.scalars,
                                args.native_stream});
            parts->backward.run({parts->gy_and_index, parts->gx, read, args.outputs, nullptr,
                                 parts->grad, args.scalars, args.native_stream});
          }};
}

const OpDef kMaxPool2d =
    define_op("max_pool2d", infer_max_pool2d, cost_max_pool2d, prepare_max_pool2d_cpu);
const OpDef kMaxPool2dGrad = {.name = "max_pool2d_grad",
                              .infer = infer_max_pool2d_grad,
                              .cost = cost_max_pool2d_grad,
                              .prepare = {prepare_max_pool2d_grad_cpu},
                              .variants = other_grads};
const OpDef kMaxPool2dGradFromInput =
    define_op("max_pool2d_grad_from_input", infer_max_pool2d_grad_from_input,
              cost_max_pool2d_grad_from_input, prepare_from_input_cpu, workspace_from_input);

Tensor max_pool2d(const Tensor& x_in, const Pool2dAttrs& attrs) {
  const Tensor x = contiguous(x_in);
  std::vector<Tensor> outputs = dispatch(kMaxPool2d, {x}, attrs);
  if (!needs_grad({x})) return outputs[0];
  const Pool2dGradAttrs grad_attrs{attrs, x.extent(1), x.extent(2)};
  record(
      "max_pool2d", {x}, std::span(outputs).first(1),
      [grad_attrs, index = Saved(outputs[1])](
          std::span<const Tensor> gys, std::span<Tensor> grads, std::span<const bool> wanted) {
        if (!wanted[0]) return;
        grads[0] = dispatch1(kMaxPool2dGrad, {contiguous(gys[0]), index.get()}, grad_attrs);
      });
  return outputs[0];
}

Tensor max_pool3d(const Tensor& x, const Pool3dAttrs& attrs) {
  const Shape& shape = x.shape();
  if (shape.rank() != 5) {
    throw UsageError("[max_pool3d] the input must have 5 dimensions, not " + shape.to_string());
  }
  const Tensor frames = reshape(x, {shape[0] * shape[1], shape[2], shape[3], shape[4]});
  const auto& [window, stride, padding] = attrs;
  const Tensor small = max_pool2d(frames, {.window = {window[1], window[2]},
                                           .stride = {stride[1], stride[2]},
                                           .padding = {padding[1], padding[2]}});
  const int64_t height = small.extent(1), width = small.extent(2);
  const Tensor columns = reshape(small, {shape[0], shape[1], height * width, shape[4]});
  const Tensor y = max_pool2d(
      columns,
      {.window = {window[0], 1}, .stride = {stride[0], 1}, .padding = {padding[0], 0}});
  return reshape(y, {shape[0], y.extent(1), height, width, shape[4]});
}

}  // namespace tidemark
