// Optimizer updates, each one fused pass over parameters and their state, in place, float32.
//
// Any number of parameters, or of gradients to clip, are one operator: on a GPU that is one
// kernel for dozens of them, where each by itself would take its launch and no more. They are
// all needed at once then, so that is for small ones (models/optim/optimizer.h decides which);
// the values are the same either way.
//
// The arithmetic, its order and its rounding to float32 are those of PyTorch's single-tensor
// reference code (torch/optim/{sgd,adam}.py). Scalars are float64 until they meet an element.
// A parameter, its gradient and its state have one shape; parameters and state are contiguous,
// gradients need not be. What different parameters of a call write must not overlap. Throws
// UsageError if the shapes differ, or, with gradients on, if a parameter needs one: call under
// NoGrad.
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

// Each grad *= min(1, max_norm / (norm + 1e-6)), `norm` a scalar on the device: nothing waits
// for it. As torch.nn.utils.clip_grad_norm_: what is not a number in `norm` becomes so in
// `grad`. Not differentiable. Throws UsageError if one is a view with gaps, or max_norm is not
// above 0.
void clip_(std::span<const Tensor> grads, const Tensor& norm, double max_norm);

// Scalars: lr, momentum, dampening, weight_decay, nesterov (0 or 1), first step (0 or 1).
// Inputs: those named, for each parameter.
extern const OpDef kSgdStep;          // param, grad
extern const OpDef kSgdMomentumStep;  // param, grad, momentum buffer
// Scalars: lr, beta1, beta2, eps, weight_decay, step, decoupled (0 or 1).
extern const OpDef kAdamStep;  // param, grad, m, v
// Scalar: max_norm.
extern const OpDef kClip;  // grad, norm: the same for each grad

}  // namespace tidemark
