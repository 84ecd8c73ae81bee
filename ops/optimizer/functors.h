// The update of one element, shared by all devices; see optimizer.h. Branches that are the same
// for all elements are template parameters, so that loops can be vectorised.
#pragma once

#include <cmath>

#include "ops/registry/attrs.h"
#include "runtime/core/host_device.h"

namespace tidemark {

struct SgdNumbers {
  explicit SgdNumbers(const Scalars& s)
      : minus_lr(static_cast<float>(-s[0])),
        momentum(static_cast<float>(s[1])),
        one_minus_dampening(static_cast<float>(1 - s[2])),
        weight_decay(static_cast<float>(s[3])) {}
  float minus_lr, momentum, one_minus_dampening, weight_decay;
};

template <bool decay>
struct SgdStep {
  SgdNumbers n;
  TIDEMARK_HOST_DEVICE void operator()(float& param, const float& grad) const {
    float d = grad;
    if constexpr (decay) d = d + n.weight_decay * param;
    param = param + n.minus_lr * d;
  }
};

template <bool decay, bool first, bool nesterov>
struct SgdMomentumStep {
  SgdNumbers n;
  TIDEMARK_HOST_DEVICE void operator()(float& param, const float& grad, float& buffer) const {
    float d = grad;
    if constexpr (decay) d = d + n.weight_decay * param;
    const float b = first ? d : n.momentum * buffer + n.one_minus_dampening * d;
    buffer = b;
    d = nesterov ? d + n.momentum * b : b;
    param = param + n.minus_lr * d;
  }
};

// Calls step(functor) with the variant that the call's scalars select.
template <class Step>
void with_sgd_momentum_step(const Scalars& scalars, const Step& step) {
  const SgdNumbers n(scalars);
  const bool decay = n.weight_decay != 0, first = scalars[5] != 0, nesterov = scalars[4] != 0;
  switch (decay << 2 | first << 1 | nesterov << 0) {
    case 0b000: return step(SgdMomentumStep<false, false, false>{n});
    case 0b001: return step(SgdMomentumStep<false, false, true>{n});
    case 0b010: return step(SgdMomentumStep<false, true, false>{n});
    case 0b011: return step(SgdMomentumStep<false, true, true>{n});
    case 0b100: return step(SgdMomentumStep<true, false, false>{n});
    case 0b101: return step(SgdMomentumStep<true, false, true>{n});
    case 0b110: return step(SgdMomentumStep<true, true, false>{n});
    default: return step(SgdMomentumStep<true, true, true>{n});
  }
}

struct AdamNumbers {
  explicit AdamNumbers(const Scalars& s)
      : shrink(static_cast<float>(1 - s[0] * s[4])),
        weight_decay(static_cast<float>(s[4])),
        one_minus_beta1(static_cast<float>(1 - s[1])),
        beta2(static_cast<float>(s[2])),
        one_minus_beta2(static_cast<float>(1 - s[2])),
        root_correction(static_cast<float>(std::sqrt(1 - std::pow(s[2], s[5])))),
        eps(static_cast<float>(s[3])),
        minus_step_size(static_cast<float>(-(s[0] / (1 - std::pow(s[1], s[5]))))) {}
  float shrink, weight_decay, one_minus_beta1, beta2, one_minus_beta2, root_correction, eps,
      minus_step_size;
};

// The factor that clip_ multiplies gradients by.
TIDEMARK_HOST_DEVICE inline float clip_factor(float norm, float max_norm) {
  const float factor = max_norm / (norm + 1e-6F);
  return factor > 1 ? 1 : factor;
}

enum class Decay { kNone, kCoupled, kDecoupled };

template <Decay decay>
struct AdamStep {
  AdamNumbers n;
  TIDEMARK_HOST_DEVICE void operator()(float& param, const float& grad, float& m,
                                       float& v) const {
    float p = param, d = grad;
    if constexpr (decay == Decay::kDecoupled) p = p * n.shrink;
    if constexpr (decay == Decay::kCoupled) d = d + n.weight_decay * p;
    const float first = m + n.one_minus_beta1 * (d - m);
    const float second = n.beta2 * v + n.one_minus_beta2 * d * d;
    const float denominator = std::sqrt(second) / n.root_correction + n.eps;
    m = first;
    v = second;
    param = p + n.minus_step_size * first / denominator;
  }
};

template <class Step>
void with_adam_step(const Scalars& scalars, const Step& step) {
  const AdamNumbers n(scalars);
  if (n.weight_decay == 0) return step(AdamStep<Decay::kNone>{n});
  if (scalars[6] != 0) return step(AdamStep<Decay::kDecoupled>{n});
  step(AdamStep<Decay::kCoupled>{n});
}

}  // namespace tidemark
