#include "ops/optimizer/optimizer.h"

#include "ops/autograd/autograd.h"
#include "ops/kernels/signature.h"
#include "ops/optimizer/kernels.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

template <const OpDef* op, size_t count>
std::vector<TensorMeta> infer_step(const OpQuery& query) {
  require_inputs(query, op->name, count);
  const TensorMeta& param = query.inputs[0];
  for (size_t i = 0; i < count; ++i) {
    const TensorMeta& input = query.inputs[i];
    require_dtype(query, op->name, i, DType::kFloat32);
    if (!(input.shape == param.shape)) {
      fail(op->name, "a parameter of shape " + param.shape.to_string() +
                         " with a gradient or state of shape " + input.shape.to_string());
    }
    require(i == 1 || input.is_contiguous(), op->name,
            "parameters and state must be contiguous");
  }
  return {};
}

std::vector<TensorMeta> infer_clip(const OpQuery& query) {
  require_inputs(query, "clip_", 2);
  for (size_t i = 0; i < 2; ++i) require_dtype(query, "clip_", i, DType::kFloat32);
  require(query.inputs[0].is_contiguous(), "clip_", "the gradient must be contiguous");
  if (query.inputs[1].shape.elements() != 1) {
    fail("clip_", "a norm of shape " + query.inputs[1].shape.to_string());
  }
  return {};
}

template <const OpDef* op, int flops>
OpCost cost(const OpQuery& query) {
  return streaming_cost(query, flops, op->written_inputs);
}

void require_off_tape(const char* op, const Tensor& param) {
  if (!needs_grad({param})) return;
  fail(op, "the parameter of shape " + param.shape().to_string() +
               " needs a gradient, and an update has none; use NoGrad");
}

}  // namespace

const OpDef kSgdStep = {.name = "sgd_step_",
                        .infer = infer_step<&kSgdStep, 2>,
                        .cost = cost<&kSgdStep, 4>,
                        .written_inputs = 0b01,
                        .prepare = {optimizer::prepare_sgd_cpu}};
const OpDef kSgdMomentumStep = {.name = "sgd_momentum_step_",
                                .infer = infer_step<&kSgdMomentumStep, 3>,
                                .cost = cost<&kSgdMomentumStep, 7>,
                                .written_inputs = 0b101,
                                .prepare = {optimizer::prepare_sgd_momentum_cpu}};
const OpDef kAdamStep = {.name = "adam_step_",
                         .infer = infer_step<&kAdamStep, 4>,
                         .cost = cost<&kAdamStep, 16>,
                         .written_inputs = 0b1101,
                         .prepare = {optimizer::prepare_adam_cpu}};

const OpDef kClip = {.name = "clip_",
                     .infer = infer_clip,
                     .cost = cost<&kClip, 1>,
                     .written_inputs = 0b01,
                     .prepare = {optimizer::prepare_clip_cpu}};

void sgd_step_(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer,
               const SgdOptions& o, bool first_step) {
  require_off_tape("sgd_step_", param);
  require(momentum_buffer.defined() == (o.momentum != 0), "sgd_step_",
          "a momentum buffer belongs to a momentum, and the reverse");
  require(!o.nesterov || (o.momentum > 0 && o.dampening == 0), "sgd_step_",
          "nesterov needs a momentum, and no dampening");
  const Scalars scalars{o.lr,           o.momentum,      o.dampening,
                        o.weight_decay, o.nesterov * 1., first_step * 1.};
  if (momentum_buffer.defined()) {
    dispatch(kSgdMomentumStep, {param, grad, momentum_buffer}, {}, scalars);
  } else {
    dispatch(kSgdStep, {param, grad}, {}, scalars);
  }
}

void adam_step_(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                const AdamOptions& o, int64_t step) {
  require_off_tape("adam_step_", param);
  require(step >= 1, "adam_step_", "steps count from 1");
  dispatch(kAdamStep, {param, grad, m, v}, {},
           {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, static_cast<double>(step),
            o.decoupled * 1.});
}

void clip_(const Tensor& grad, const Tensor& norm, double max_norm) {
  require_off_tape("clip_", grad);
  if (!(max_norm > 0)) fail("clip_", "a largest norm of " + std::to_string(max_norm));
  dispatch(kClip, {grad, norm}, {}, {max_norm});
}

}  // namespace tidemark
