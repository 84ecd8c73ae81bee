#include "ops/optimizer/optimizer.h"

#include "ops/autograd/autograd.h"
#include "ops/kernels/signature.h"
#include "ops/optimizer/kernels.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

template <const OpDef* op>
std::vector<TensorMeta> infer_step(const OpQuery& query) {
  const size_t group = op->input_group;
  if (query.inputs.empty() || query.inputs.size() % group != 0) {
    fail(op->name, std::to_string(query.inputs.size()) + " inputs, not " +
                       std::to_string(group) + " for each parameter");
  }
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    const TensorMeta& input = query.inputs[i];
    const TensorMeta& param = query.inputs[i - i % group];
    require_dtype(query, op->name, i, DType::kFloat32);
    if (!(input.shape == param.shape)) {
      fail(op->name, "a parameter of shape " + param.shape.to_string() +
                         " with a gradient or state of shape " + input.shape.to_string());
    }
    require(i % group == 1 || input.is_contiguous(), op->name,
            "parameters and state must be contiguous");
  }
  return {};
}

std::vector<TensorMeta> infer_clip(const OpQuery& query) {
  require(!query.inputs.empty() && query.inputs.size() % 2 == 0, "clip_",
          "each gradient must have a norm");
  for (size_t i = 0; i < query.inputs.size(); i += 2) {
    const TensorMeta &grad = query.inputs[i], &norm = query.inputs[i + 1];
    require_dtype(query, "clip_", i, require_floats(query, "clip_", 0, 1));
    require_dtype(query, "clip_", i + 1, DType::kFloat32);
    require(grad.is_contiguous(), "clip_", "the gradient must be contiguous");
    if (norm.shape.elements() != 1)
      fail("clip_", "a norm must have one element, not shape " + norm.shape.to_string());
  }
  return {};
}

OpCost clip_cost(const OpQuery& query) { return updating_cost(kClip, query, 1); }

void require_off_tape(const char* op, const Tensor& param) {
  if (!needs_grad({param})) return;
  fail(op, "the parameter of shape " + param.shape().to_string() +
               " needs a gradient, and an update has none; use NoGrad");
}

// Operator `self`: each group of `group` inputs belongs to a parameter; the bits of
// `written_inputs` say which of a group are updated in place.
template <const OpDef* self, int flops>
constexpr OpDef step_op(const char* name, uint32_t group, uint32_t written_inputs,
                        PrepareKernel cpu) {
  return {.name = name,
          .infer = infer_step<self>,
          .cost = optimizer::step_cost<self, flops>,
          .written_inputs = written_inputs,
          .input_group = group,
          .prepare = {cpu}};
}

}  // namespace

const OpDef kSgdStep = step_op<&kSgdStep, 4>("sgd_step_", 2, 0b01, optimizer::prepare_sgd_cpu);
const OpDef kSgdMomentumStep = step_op<&kSgdMomentumStep, 7>(
    "sgd_momentum_step_", 3, 0b101, optimizer::prepare_sgd_momentum_cpu);
const OpDef kAdamStep =
    step_op<&kAdamStep, 16>("adam_step_", 4, 0b1101, optimizer::prepare_adam_cpu);

const OpDef kClip = {.name = "clip_",
                     .infer = infer_clip,
                     .cost = clip_cost,
                     .written_inputs = 0b01,
                     .input_group = 2,
                     .prepare = {optimizer::prepare_clip_cpu}};

namespace {

const OpDef& sgd_op(const SgdUpdate& update) {
  const bool momentum = update.momentum_buffer.defined();
  if (update.master.defined()) return momentum ? kSgdMomentumMasterStep : kSgdMasterStep;
  return momentum ? kSgdMomentumStep : kSgdStep;
}

}  // namespace

void sgd_step_(std::span<const SgdUpdate> updates, const SgdOptions& o, bool first_step) {
  require(!o.nesterov || (o.momentum > 0 && o.dampening == 0), "sgd_step_",
          "nesterov needs momentum and no dampening");
  const bool momentum = o.momentum != 0;
  const OpDef& op = updates.empty() ? kSgdStep : sgd_op(updates.front());
  std::vector<Tensor> inputs;
  inputs.reserve(op.input_group * updates.size());
  for (const SgdUpdate& update : updates) {
    require_off_tape("sgd_step_", update.param);
    require(update.momentum_buffer.defined() == momentum, "sgd_step_",
            "a momentum buffer is needed with momentum, and only then");
    require(&sgd_op(update) == &op, "sgd_step_", "updates of a call must be of one kind");
    inputs.insert(inputs.end(), {update.param, update.grad});
    if (momentum) inputs.push_back(update.momentum_buffer);
    if (update.master.defined()) inputs.push_back(update.master);
  }
  dispatch(op, inputs, {},
           {o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov * 1., first_step * 1.});
}

void sgd_step_(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer,
               const SgdOptions& options, bool first_step) {
  const SgdUpdate update{param, grad, momentum_buffer};
  sgd_step_({&update, 1}, options, first_step);
}

namespace {

const OpDef& adam_op(const AdamUpdate& update) {
  const bool eight_bit = update.m_scale.defined();
  if (update.master.defined()) return eight_bit ? kAdam8bitMasterStep : kAdamMasterStep;
  if (eight_bit) return kAdam8bitStep;
  return update.param.dtype() == DType::kBFloat16 ? kAdamBfloat16Step : kAdamStep;
}

}  // namespace

void adam_step_(std::span<const AdamUpdate> updates, const AdamOptions& o, int64_t step,
                uint64_t rounding_key) {
  require(step >= 1, "adam_step_", "steps count from 1");
  const OpDef& op = updates.empty() ? kAdamStep : adam_op(updates.front());
  std::vector<Tensor> inputs;
  inputs.reserve(op.input_group * updates.size());
  for (const AdamUpdate& update : updates) {
    require_off_tape("adam_step_", update.param);
    require(&adam_op(update) == &op, "adam_step_", "updates of a call must be of one kind");
    require(update.m_scale.defined() == update.v_scale.defined(), "adam_step_",
            "8-bit state needs scales of both m and v");
    inputs.insert(inputs.end(), {update.param, update.grad, update.m, update.v});
    if (update.m_scale.defined()) {
      inputs.insert(inputs.end(), {update.m_scale, update.v_scale});
    }
    if (update.master.defined()) inputs.push_back(update.master);
  }
  dispatch(op, inputs, {},
           {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, static_cast<double>(step),
            o.decoupled * 1., static_cast<double>(rounding_key)});
}

void adam_step_(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                const AdamOptions& options, int64_t step) {
  const AdamUpdate update{param, grad, m, v};
  adam_step_({&update, 1}, options, step);
}

void clip_(std::span<const Tensor> grads, const Tensor& norm, double max_norm) {
  if (!(max_norm > 0))
    fail("clip_", "the maximum norm must be positive, not " + std::to_string(max_norm));
  std::vector<Tensor> inputs;
  inputs.reserve(2 * grads.size());
  for (const Tensor& grad : grads) {
    require_off_tape("clip_", grad);
    inputs.insert(inputs.end(), {grad, norm});
  }
  dispatch(kClip, inputs, {}, {max_norm});
}

}  // namespace tidemark
