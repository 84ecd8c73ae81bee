// The update of one element, shared by all devices; see optimizer.h. Branches that are the same
// for all elements are template parameters, so that loops can be vectorised.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ops/kernels/instruction_sets.h"
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

// A rule, with a call's scalars. with_step() calls use(functor) with the variant that they
// select. kStates: the tensors of state that belong to a parameter.
template <bool momentum>
struct SgdRule {
  static constexpr size_t kStates = momentum ? 1 : 0;
  explicit SgdRule(const Scalars& s) : numbers(s), nesterov(s[4] != 0), first(s[5] != 0) {}

  template <class Use>
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void with_step(const Use& use) const {
    const bool decay = numbers.weight_decay != 0;
    if constexpr (!momentum) {
      if (decay) return use(SgdStep<true>{numbers});
      use(SgdStep<false>{numbers});
    } else {
      switch (decay << 2 | first << 1 | nesterov << 0) {
        case 0b000: return use(SgdMomentumStep<false, false, false>{numbers});
        case 0b001: return use(SgdMomentumStep<false, false, true>{numbers});
        case 0b010: return use(SgdMomentumStep<false, true, false>{numbers});
        case 0b011: return use(SgdMomentumStep<false, true, true>{numbers});
        case 0b100: return use(SgdMomentumStep<true, false, false>{numbers});
        case 0b101: return use(SgdMomentumStep<true, false, true>{numbers});
        case 0b110: return use(SgdMomentumStep<true, true, false>{numbers});
        default: return use(SgdMomentumStep<true, true, true>{numbers});
      }
    }
  }

  SgdNumbers numbers;
  bool nesterov;
  bool first;  // update of these parameters
};

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

struct AdamRule {
  static constexpr size_t kStates = 2;
  explicit AdamRule(const Scalars& s)
      : numbers(s),
        update(static_cast<uint64_t>(s[5])),
        rounding_key(static_cast<uint64_t>(s[7])),
        decoupled(s[6] != 0),
        first(update == 1) {}

  template <class Use>
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void with_step(const Use& use) const {
    if (numbers.weight_decay == 0) return use(AdamStep<Decay::kNone>{numbers});
    if (decoupled) return use(AdamStep<Decay::kDecoupled>{numbers});
    use(AdamStep<Decay::kCoupled>{numbers});
  }

  AdamNumbers numbers;
  uint64_t update;        // of these parameters, counted from 1
  uint64_t rounding_key;  // element e takes word e % 4 of the Philox block (e / 4, update)
  bool decoupled, first;
};

}  // namespace tidemark
