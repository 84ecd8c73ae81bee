// Optimizer updates, in place, float32. Each is one fused pass over parameters and their state.
//
// One operator takes any number of parameters, or of gradients to clip. On a GPU, one kernel
// updates dozens of them; a kernel for each small one would cost little but its launch. All of
// an operator's tensors must be resident at once, so grouping is for small ones
// (models/optim/optimizer.h decides which). The values are the same either way.
//
// The arithmetic, its order and its rounding to float32 follow PyTorch's single-tensor
// reference code (torch/optim/{sgd,adam}.py). Scalars are float64 until they are applied to an
// element. A parameter, its gradient and its state have one shape; parameters and state are
// contiguous, gradients need not be. The tensors written for different parameters of a call
// must not overlap. Throws UsageError if the shapes differ, or if gradients are on and a
// parameter needs one: call under NoGrad.
#pragma once

#include <cstdint>
#include <span>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

struct SgdOptions {
  double lr = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

// d = grad + weight_decay param; with momentum, buffer = momentum buffer + (1 - dampening) d
// (first step: buffer = d), and d = buffer, or d + momentum buffer with nesterov; param -= lr
// d. `momentum_buffer` is undefined exactly if momentum is 0.
struct SgdUpdate {
  Tensor param, grad, momentum_buffer;
};
void sgd_step_(std::span<const SgdUpdate> updates, const SgdOptions& options, bool first_step);
void sgd_step_(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer,
               const SgdOptions& options, bool first_step);

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled =
      false;  // AdamW: param -= lr weight_decay param; else grad += weight_decay param
};

// m += (1 - beta1) (grad - m); v = beta2 v + (1 - beta2) grad^2;
// param -= lr / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + eps).
// `step` counts from 1; m and v start as zeros.
struct AdamUpdate {
  Tensor param, grad, m, v;
};
void adam_step_(std::span<const AdamUpdate> updates, const AdamOptions& options, int64_t step);
void adam_step_(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                const AdamOptions& options, int64_t step);

// Multiplies each gradient by min(1, max_norm / (norm + 1e-6)). `norm` is a scalar on the
// device; the host does not wait for it. As in torch.nn.utils.clip_grad_norm_, a NaN norm makes
// the gradients NaN. Not differentiable. Throws UsageError if a gradient is a view with gaps,
// or if max_norm is not above 0.
void clip_(std::span<const Tensor> grads, const Tensor& norm, double max_norm);

// Scalars: lr, momentum, dampening, weight_decay, nesterov (0 or 1), first step (0 or 1).
// Inputs: the tensors named, for each parameter.
extern const OpDef kSgdStep;          // param, grad
extern const OpDef kSgdMomentumStep;  // param, grad, momentum buffer
// Scalars: lr, beta1, beta2, eps, weight_decay, step, decoupled (0 or 1).
extern const OpDef kAdamStep;  // param, grad, m, v
// Scalar: max_norm.
extern const OpDef kClip;  // grad, norm: the same for each grad

}  // namespace tidemark
