// IEEE 754 binary16 and bfloat16 to float32; exact, NaNs keep their payload.
#pragma once

#include <bit>
#include <cstdint>

namespace tidemark {

inline float half_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} << 16 & 0x80000000;
  const uint32_t exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

inline float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

}  // namespace tidemark
