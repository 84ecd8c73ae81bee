// Logic, shifts and bit fields.
#include <algorithm>
#include <bit>

#include "tests/support/ptx/instructions.h"
#include "tests/support/ptx/step.h"

namespace tidemark::ptx {
namespace {

template <class F>
void map_bits(const Step& s, const F& f) {
  visit_unsigned(
      s, [&]<class T>(T) { map<T, T>(s, [&](T a, T b) { return static_cast<T>(f(a, b)); }); });
}

uint64_t low_bits(uint32_t count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

}  // namespace

void execute_and(const Step& s) {
  map_bits(s, [](auto a, auto b) { return a & b; });
}
void execute_or(const Step& s) {
  map_bits(s, [](auto a, auto b) { return a | b; });
}
void execute_xor(const Step& s) {
  map_bits(s, [](auto a, auto b) { return a ^ b; });
}

void execute_not(const Step& s) {
  const uint64_t all = low_bits(static_cast<uint32_t>(s.instruction.type.bits));
  map<uint64_t>(s, [all](uint64_t a) { return ~a & all; });
}

// Counts beyond the width shift everything out.
void execute_shl(const Step& s) {
  visit_unsigned(s, [&]<class T>(T) {
    map<T, uint32_t>(s, [](T a, uint32_t count) {
      return static_cast<T>(count < 8 * sizeof(T) ? static_cast<uint64_t>(a) << count : 0);
    });
  });
}

void execute_shr(const Step& s) {
  visit_integer(s, [&]<class T>(T) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    map<T, uint32_t>(s, [](T a, uint32_t count) {
      if constexpr (std::is_signed_v<T>) {
        return static_cast<T>(a >> std::min(count, kBits - 1));
      } else {
        return static_cast<T>(count < kBits ? a >> count : 0);
      }
    });
  });
}

// A funnel: 32 of the 64 bits of (b, a).
void execute_shf(const Step& s) {
  const bool left = s.has(Modifier::k_l), clamp = s.has(Modifier::k_clamp);
  map<uint32_t, uint32_t, uint32_t>(s, [&](uint32_t a, uint32_t b, uint32_t count) {
    const uint64_t both = uint64_t{b} << 32 | a;
    count = clamp ? std::min(count, 32U) : count % 32;
    return static_cast<uint32_t>(left ? both << count >> 32 : both >> count);
  });
}

// Bits of `a` into `b`, `count` of them from `first` on.
void execute_bfi(const Step& s) {
  visit_unsigned(s, [&]<class T>(T) {
    map<T, T, uint32_t, uint32_t>(s, [](T a, T b, uint32_t first, uint32_t count) {
      first &= 0xFF;
      const uint64_t field = first >= 64 ? 0 : low_bits(count & 0xFF) << first;
      const uint64_t moved = first >= 64 ? 0 : static_cast<uint64_t>(a) << first;
      return static_cast<T>((moved & field) | (static_cast<uint64_t>(b) & ~field));
    });
  });
}

void execute_bfe(const Step& s) {
  visit_integer(s, [&]<class T>(T) {
    map<T, uint32_t, uint32_t>(s, [](T a, uint32_t first, uint32_t count) {
      constexpr uint32_t kBits = 8 * sizeof(T);
      first &= 0xFF;
      count &= 0xFF;
      const bool sign =
          std::is_signed_v<T> && count > 0 &&
          (static_cast<uint64_t>(a) >> std::min(first + count - 1, kBits - 1) & 1) != 0;
      const uint64_t field = first >= kBits ? 0 : to_register(a) >> first & low_bits(count);
      return static_cast<T>(
          sign ? field | ~low_bits(std::min(count, kBits - std::min(first, kBits))) : field);
    });
  });
}

// Four of the eight bytes of (b, a), as the digits of c choose; digits from 8 on copy a sign.
void execute_prmt(const Step& s) {
  map<uint32_t, uint32_t, uint32_t>(s, [](uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t both = uint64_t{b} << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t digit = c >> (4 * i) & 0xF;
      uint32_t byte = both >> (8 * (digit & 7)) & 0xFF;
      if ((digit & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
      result |= byte << (8 * i);
    }
    return result;
  });
}

void execute_popc(const Step& s) {
  visit_unsigned(s, [&]<class T>(T) {
    map<T>(s,
           [](T a) { return static_cast<uint32_t>(std::popcount(static_cast<uint64_t>(a))); });
  });
}

void execute_clz(const Step& s) {
  const int unused = 64 - s.instruction.type.bits;
  visit_unsigned(s, [&]<class T>(T) {
    map<T>(s, [&](T a) {
      return static_cast<uint32_t>(std::countl_zero(static_cast<uint64_t>(a)) - unused);
    });
  });
}

void execute_brev(const Step& s) {
  visit_unsigned(s, [&]<class T>(T) {
    map<T>(s, [&](T a) {
      uint64_t result = 0;
      for (int i = 0; i < s.instruction.type.bits; ++i) {
        result = result << 1 | (static_cast<uint64_t>(a) >> i & 1);
      }
      return static_cast<T>(result);
    });
  });
}

}  // namespace tidemark::ptx
