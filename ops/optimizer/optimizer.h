// Optimizer updates, in place. Each is one fused pass over parameters and their state, computed
// in float32. Parameters may be bfloat16, and Adam's state 8-bit.
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
//
// A bfloat16 parameter needs a master, as Adam's may have one (below).
struct SgdUpdate {
  Tensor param, grad, momentum_buffer;
  Tensor master{};
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
//
// Compact variants, chosen by the tensors given. All updates of a call are of one kind.
//
// - The parameter is bfloat16, and its gradient bfloat16 or float32. With `master`, a float32
//   copy, the copy is updated, and the parameter is the copy rounded to nearest: the copy has
//   the bits of a float32 parameter updated with the same gradients. The first step starts from
//   the parameter and only writes the copy. Without a master, the updated value is rounded at
//   random to one of its two neighbours, so that the mean is exact and small updates are not
//   lost. The random bits depend on (rounding_key, step, element) alone. Such a call has one
//   parameter.
// - m and v are uint8, with `m_scale` and `v_scale`, float32, one for each 256 elements
//   (dynamic_map.h describes the numbers); they are zeros at first, as m and v are. The step
//   uses m and v before they are rounded, so results differ from those of float32 state from
//   step 2 on. A NaN or an infinity spreads to its 256 elements.
//
// Gradients of these variants must be contiguous.
struct AdamUpdate {
  Tensor param, grad, m, v;
  Tensor m_scale{}, v_scale{};
  Tensor master{};
};
// REQUIRES: rounding_key < 2^53.
void adam_step_(std::span<const AdamUpdate> updates, const AdamOptions& options, int64_t step,
                uint64_t rounding_key = 0);
// The number of scales for a parameter of this many elements.
int64_t adam_scales(int64_t elements);
void adam_step_(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                const AdamOptions& options, int64_t step);

// Multiplies each gradient by min(1, max_norm / (norm + 1e-6)). `norm` is a scalar on the
// device; the host does not wait for it. As in torch.nn.utils.clip_grad_norm_, a NaN norm makes
// the gradients NaN. Gradients are all float32, or all bfloat16, then rounded to nearest. Not
// differentiable. Throws UsageError if a gradient is a view with gaps, or if max_norm is not
// above 0.
void clip_(std::span<const Tensor> grads, const Tensor& norm, double max_norm);

// Scalars: lr, momentum, dampening, weight_decay, nesterov (0 or 1), first step (0 or 1).
// Inputs: the tensors named, for each parameter.
extern const OpDef kSgdStep;                // param, grad
extern const OpDef kSgdMomentumStep;        // param, grad, momentum buffer
extern const OpDef kSgdMasterStep;          // param, grad, master
extern const OpDef kSgdMomentumMasterStep;  // param, grad, momentum buffer, master
// Scalars: lr, beta1, beta2, eps, weight_decay, step, decoupled (0 or 1).
extern const OpDef kAdamStep;  // param, grad, m, v
// The same and the rounding key.
extern const OpDef kAdamBfloat16Step;    // param, grad, m, v
extern const OpDef kAdamMasterStep;      // param, grad, m, v, master
extern const OpDef kAdam8bitStep;        // param, grad, m, v, m_scale, v_scale
extern const OpDef kAdam8bitMasterStep;  // param, grad, m, v, m_scale, v_scale, master
// Scalar: max_norm.
extern const OpDef kClip;  // grad, norm: the same for each grad

}  // namespace tidemark
