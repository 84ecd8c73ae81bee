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
// code's value times the scale. Quantising takes the nearest value.
//
// Not from the paper: blocks of 256 elements, as later in its authors' bitsandbytes, where it
// has 2048; and a positive v never becomes 0, because the next step would divide by eps alone.
#pragma once

#include <bit>
#include <cstdint>

#include "ops/kernels/instruction_sets.h"
#include "runtime/core/host_device.h"

namespace tidemark {

inline constexpr int64_t kQuantisedBlock = 256;

template <bool kSigned>
struct DynamicMap {
  // The code of x in [-1, 1], or in [0, 1] if unsigned. NaN has the code of 0; any other x has
  // some code.
  // (Codes fit in 8 bits. They are ints here, because a loop over bytes and floats would be
  // vectorised by the number of bytes in a vector, which takes too many registers.)
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE int code(float x) {
    const int k = magnitude_code(x < 0 ? -x : x);
    if constexpr (!kSigned) return k;
    const int negative = kTop - 1 - (k < kTop ? k : kTop - 1);
    return x < 0 ? negative : kTop - 1 + k;
  }
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float value(int code) {
    if constexpr (!kSigned) return magnitude(code);
    const int k = code - (kTop - 1);
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

  // A decade's numbers: its first code, where it and its values begin, the width of a bin, and
  // how many bins are as wide as 1. The numbers of a decade are sums of differences to the
  // decade below, added where an element is above a limit: this is exact, as they are
  // integers (bits of floats), and unlike selections or a table it is always vectorised.
  struct Decade {
    int first, bottom, lowest, bin, bins_of_one;
    TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void add_where(bool above, const Decade& difference) {
      const int mask = -int{above};
      first += mask & difference.first;
      bottom += mask & difference.bottom;
      lowest += mask & difference.lowest;
      bin += mask & difference.bin;
      bins_of_one += mask & difference.bins_of_one;
    }
  };
  static constexpr int bits_of(double x) { return std::bit_cast<int>(static_cast<float>(x)); }
  static constexpr Decade decade(int d) {
    return {first(d), bits_of(bottom(d)), bits_of(middle(d, 0)), bits_of(bin(d)),
            bits_of(1 / bin(d))};
  }
  static constexpr Decade difference(int d) {
    const Decade low = decade(d - 1), high = decade(d);
    return {high.first - low.first, high.bottom - low.bottom, high.lowest - low.lowest,
            high.bin - low.bin, high.bins_of_one - low.bins_of_one};
  }
  template <int d = 1>
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void find_decade(float x, Decade& found) {
    constexpr float kLimit = static_cast<float>((last_middle(d - 1) + middle(d, 0)) / 2);
    constexpr Decade kDifference = difference(d);
    found.add_where(x > kLimit, kDifference);
    if constexpr (d + 1 < kDecades) find_decade<d + 1>(x, found);
  }
  template <int d = 1>
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void find_decade_of(int code, Decade& found) {
    constexpr int kFirst = first(d);
    constexpr Decade kDifference = difference(d);
    found.add_where(code >= kFirst, kDifference);
    if constexpr (d + 1 < kDecades) find_decade_of<d + 1>(code, found);
  }

  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE int magnitude_code(float x) {
    constexpr Decade kLowest = decade(0);
    constexpr float kZero = kSigned ? static_cast<float>(middle(0, 0) / 2) : 0.0F;
    constexpr float kOne = static_cast<float>((last_middle(kDecades - 1) + 1) / 2);
    Decade in = kLowest;
    find_decade(x, in);
    const float last_bin = static_cast<float>(kSigned ? in.first - 1 : in.first);
    float at = (x - std::bit_cast<float>(in.bottom)) * std::bit_cast<float>(in.bins_of_one);
    at = at < last_bin ? at : last_bin;  // NaN too
    at = at > 0 ? at : 0;
    const int k = in.first + static_cast<int>(at);
    return (k & -int{x > kZero}) + ((kTop - k) & -int{x > kOne});
  }
  static TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float magnitude(int k) {
    constexpr Decade kLowest = decade(0);
    Decade in = kLowest;
    find_decade_of(k, in);
    const float inside = std::bit_cast<float>(in.lowest) +
                         static_cast<float>(k - in.first) * std::bit_cast<float>(in.bin);
    return k == kTop ? 1.0F : k == 0 ? 0.0F : inside;
  }
};

// The bits of a magnitude, which are ordered as the magnitudes are, with NaN above all.
TIDEMARK_HOST_DEVICE TIDEMARK_INLINE uint32_t magnitude_bits(float x) {
  return std::bit_cast<uint32_t>(x) & 0x7FFFFFFF;
}

}  // namespace tidemark
