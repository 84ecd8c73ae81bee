// bfloat16: the upper half of a float32, so the same range with 8 bits of precision.
//
// For storage, not for calculation: converts implicitly to float when read, and from float,
// rounded to nearest (ties to even), when written. Functors and loops over a storage type T
// therefore calculate in float for any T.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "runtime/core/host_device.h"

namespace tidemark {

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  TIDEMARK_HOST_DEVICE constexpr BFloat16(float value) : bits(round(value)) {}  // NOLINT
  TIDEMARK_HOST_DEVICE constexpr operator float() const {                       // NOLINT
    return std::bit_cast<float>(uint32_t{bits} << 16);
  }

 private:
  // NaN stays NaN, and becomes quiet; a GPU's instruction forgets which. No branches: loops are
  // vectorised.
  TIDEMARK_HOST_DEVICE static constexpr uint16_t round(float value) {
#if TIDEMARK_DEVICE_CODE >= 800
    if (!std::is_constant_evaluated()) {
      uint16_t nearest_even = 0;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(nearest_even) : "f"(value));
      return nearest_even;
    }
#endif
    const uint32_t all = std::bit_cast<uint32_t>(value);
    const uint32_t nearest = (all + 0x7FFF + (all >> 16 & 1)) >> 16;
    const uint32_t quiet = all >> 16 | 0x40;
    return static_cast<uint16_t>((all & 0x7FFFFFFF) > 0x7F800000 ? quiet : nearest);
  }
};
static_assert(sizeof(BFloat16) == 2 && alignof(BFloat16) == 2);

}  // namespace tidemark
