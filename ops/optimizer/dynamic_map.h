// The 256 values of dynamic tree quantisation: Dettmers, Lewis, Shleifer and Zettlemoyer,
// "8-bit Optimizers via Block-wise Quantization" (2021), arXiv:2110.02861. Small numbers get a
// large range, and large ones precision: each of the seven decades (10^-7, 10^-6], ..., (0.1,
// 1] is cut into equal bins, twice as many as the decade below has, and a bin's middle stands
// for it. The values 0 and 1 come on top.
//
//                 bins of the decades       codes, by ascending value
//   signed, m     1, 2, 4, ..., 64          127 negative ones, 0, 127 positive ones, 1
//   unsigned, v   2, 4, 8, ..., 128         0, 254 positive ones, 1
//
// A block of kQuantisedBlock elements shares a scale, its largest magnitude; an element is its
// code's value times the scale. Quantising takes the nearest value, except that a positive v
// never becomes 0: the next step would divide by eps alone.
#pragma once

#include <bit>
#include <cstdint>

#include "ops/kernels/instruction_sets.h"
#include "runtime/core/host_device.h"

namespace tidemark {

inline constexpr int64_t kQuantisedBlock = 256;

template <bool kSigned>
struct DynamicMap {
  // The code of x in [-1, 1], or in [0, 1] if unsigned. Any other x has some code.
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE uint8_t code(float x) {
    const int k = magnitude_code(x < 0 ? -x : x);
    if constexpr (!kSigned) return static_cast<uint8_t>(k);
    const int negative = kTop - 1 - (k < kTop ? k : kTop - 1);
    return static_cast<uint8_t>(x < 0 ? negative : kTop - 1 + k);
  }
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float value(uint8_t code) {
    if constexpr (!kSigned) return magnitude(code);
    const int k = int{code} - (kTop - 1);
    const float x = magnitude(k < 0 ? -k : k);
    return k < 0 ? -x : x;
  }

 private:
  // Codes of magnitudes: 0, then those of the decades, then the one of 1.
  static constexpr int kDecades = 7, kTop = kSigned ? 128 : 255;
  static constexpr int bins(int d) { return (kSigned ? 1 : 2) << d; }
  static constexpr int first(int d) { return kSigned ? bins(d) : bins(d) - 1; }
  static constexpr double bottom(int d) {
    double power = 0.1;
    for (; d < kDecades - 1; ++d) power /= 10;
    return power;
  }
  static constexpr double bin(int d) { return 9 * bottom(d) / bins(d); }
  static constexpr double middle(int d, int i) { return bottom(d) + (i + 0.5) * bin(d); }
  static constexpr double last_middle(int d) { return middle(d, bins(d) - 1); }

  // Chosen by selections instead of from a table, so that loops are vectorised.
  struct Decade {
    int first, last;         // codes
    float bottom, lowest;    // of the decade, and of its values
    float bin, bins_of_one;  // the width of a bin; how many are as wide as 1
  };
  static constexpr Decade decade(int d) {
    return {first(d),
            first(d) + bins(d) - 1,
            static_cast<float>(bottom(d)),
            static_cast<float>(middle(d, 0)),
            static_cast<float>(bin(d)),
            static_cast<float>(1 / bin(d))};
  }
  template <int d>
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void move_up(bool to, Decade& chosen) {
    constexpr Decade kUp = decade(d);
    chosen.first = to ? kUp.first : chosen.first;
    chosen.last = to ? kUp.last : chosen.last;
    chosen.bottom = to ? kUp.bottom : chosen.bottom;
    chosen.lowest = to ? kUp.lowest : chosen.lowest;
    chosen.bin = to ? kUp.bin : chosen.bin;
    chosen.bins_of_one = to ? kUp.bins_of_one : chosen.bins_of_one;
  }
  template <int d = 1>
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void find_decade(float x, Decade& chosen) {
    constexpr float kLimit = static_cast<float>((last_middle(d - 1) + middle(d, 0)) / 2);
    move_up<d>(x > kLimit, chosen);
    if constexpr (d + 1 < kDecades) find_decade<d + 1>(x, chosen);
  }
  template <int d = 1>
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void find_decade_of(int code, Decade& chosen) {
    constexpr int kFirst = first(d);
    move_up<d>(code >= kFirst, chosen);
    if constexpr (d + 1 < kDecades) find_decade_of<d + 1>(code, chosen);
  }

  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE int magnitude_code(float x) {
    constexpr Decade kLowest = decade(0);
    constexpr float kZero = kSigned ? static_cast<float>(middle(0, 0) / 2) : 0.0F;
    constexpr float kOne = static_cast<float>((last_middle(kDecades - 1) + 1) / 2);
    Decade in = kLowest;
    find_decade(x, in);
    const float last = static_cast<float>(in.last - in.first);
    float at = (x - in.bottom) * in.bins_of_one;
    at = at < last ? at : last;  // NaN too
    at = at > 0 ? at : 0;
    const int k = in.first + static_cast<int>(at);
    return x > kOne ? kTop : x > kZero ? k : 0;
  }
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float magnitude(int k) {
    constexpr Decade kLowest = decade(0);
    Decade in = kLowest;
    find_decade_of(k, in);
    const float inside = in.lowest + static_cast<float>(k - in.first) * in.bin;
    return k == kTop ? 1.0F : k == 0 ? 0.0F : inside;
  }
};

// The bits of a magnitude, which are ordered as the magnitudes are, with NaN above all.
TIDEMARK_HOST_DEVICE TIDEMARK_INLINE uint32_t magnitude_bits(float x) {
  return std::bit_cast<uint32_t>(x) & 0x7FFFFFFF;
}

}  // namespace tidemark
