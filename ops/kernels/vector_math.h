// Replacements for libm functions in CPU loops that the compiler should vectorise: no calls, no
// branches. Errors are a few units in the last place (tests/ops/kernels/vector_math_test.cc).
//
// NaN stays NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "ops/kernels/instruction_sets.h"
#include "runtime/core/host_device.h"

namespace tidemark {

// The probability that a standard normal value is below x: (1 + erf(x / sqrt 2)) / 2,
// by Math's e^x. For GPUs too.
template <class Math>
TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float normal_cdf(float x) {
  // erf by N. Juffa: a polynomial below 475 / 512, 1 - e^polynomial above.
  const float a = x * 0.707106781F, t = std::fabs(a), s = a * a;
  float low = -5.96761703e-4F;
  low = low * s + 4.99119423e-3F;
  low = low * s - 2.67681349e-2F;
  low = low * s + 1.12819925e-1F;
  low = low * s - 3.76125336e-1F;
  low = low * s + 1.28379166e-1F;
  low = low * a + a;
  float high =
      (-1.72853470e-5F * t + 3.83197126e-4F) * s + (-3.88396438e-3F * t + 2.42546219e-2F);
  high = high * t - 1.06777877e-1F;
  high = high * t - 6.34846687e-1F;
  high = high * t - 1.28717512e-1F;
  high = high * t - t;
  const float half_erfc = 0.5F * Math::exp_negative(t > 6.0F ? -87.0F : high);
  const float large = a < 0 ? half_erfc : 1.0F - half_erfc;
  return t < 0.927734375F ? 0.5F + 0.5F * low : large;
}

struct VectorMath {
  // e^x for x <= 0. Below x = -87 the result stays at e^-87, 1.6e-38.
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float exp_negative(float x) {
    x = x < -87.0F ? -87.0F : x;
    // Adding 1.5 * 2^23 rounds to an integer and leaves that integer in the lowest bits.
    const float shifted = x * 1.44269504F + 12582912.0F;
    const float n = shifted - 12582912.0F;
    const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // x - n ln 2, in two parts
    float p = 1.9875691500e-4F;                                   // Cephes
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    const float power =
        std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + (127U << 23));
    return (p * r * r + r + 1.0F) * power;
  }

  // 1 / (1 + e^-x)
  static TIDEMARK_INLINE float logistic(float x) {
    const float e = exp_negative(-std::fabs(x));
    return (x < 0 ? e : 1.0F) / (1.0F + e);
  }
};

}  // namespace tidemark
