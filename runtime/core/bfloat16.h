// bfloat16: the upper half of a float32, so the same range with 8 bits of precision.
//
// A way to store numbers, not to calculate with them: it turns into float by itself wherever
// one is read, and a float into it, rounded to the nearest (ties to even), wherever one is
// written. So functors and loops over a storage type T calculate in float whatever T is.
#pragma once

#include <bit>
#include <cstdint>

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
  // Not a number stays so, and becomes quiet. No branches: loops are vectorised.
  TIDEMARK_HOST_DEVICE static constexpr uint16_t round(float value) {
    const uint32_t all = std::bit_cast<uint32_t>(value);
    const uint32_t nearest = (all + 0x7FFF + (all >> 16 & 1)) >> 16;
    const uint32_t quiet = all >> 16 | 0x40;
    return static_cast<uint16_t>((all & 0x7FFFFFFF) > 0x7F800000 ? quiet : nearest);
  }
};
static_assert(sizeof(BFloat16) == 2 && alignof(BFloat16) == 2);

}  // namespace tidemark
