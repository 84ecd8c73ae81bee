// The arithmetic of gelu.h, shared by all devices.
//
// Math provides e^x and the like: VectorMath for CPU loops, DeviceMath for GPU kernels.
#pragma once

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/vector_math.h"
#include "runtime/core/host_device.h"

namespace tidemark {

template <class Math>
struct GeluExact {
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float operator()(float x) const {
    return x * normal_cdf<Math>(x);
  }
};
template <class Math>
struct GeluExactGrad {
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float operator()(float g, float x) const {
    const float density = 0.398942280F * Math::exp_negative(-0.5F * x * x);
    return g * (normal_cdf<Math>(x) + x * density);
  }
};

// 2 u
TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float gelu_twice_u(float x) {
  return x * (1.59576912F + 0.0713548163F * x * x);
}
template <class Math>
struct GeluTanh {
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float operator()(float x) const {
    return x * Math::logistic(gelu_twice_u(x));
  }
};
template <class Math>
struct GeluTanhGrad {
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float operator()(float g, float x) const {
    const float twice_u = gelu_twice_u(x), s = Math::logistic(twice_u);
    const float spread = s * Math::logistic(-twice_u);  // s (1 - s), without cancellation
    const float slope = 1.59576912F + 0.214064449F * (x * x);
    // The spread vanishes long before the slope is infinite.
    return g * (s + (spread > 0 ? x * spread * slope : spread));
  }
};

}  // namespace tidemark
