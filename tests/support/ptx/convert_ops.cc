// Conversions between types.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/ptx/instructions.h"
#include "tests/support/ptx/step.h"

namespace tidemark::ptx {
namespace {

// To an integral value, as .rni, .rzi, .rmi or .rpi says.
template <class T>
T round(const Step& s, T x) {
  if (s.has(Modifier::k_rni)) return std::nearbyint(x);
  if (s.has(Modifier::k_rzi)) return std::trunc(x);
  if (s.has(Modifier::k_rmi)) return std::floor(x);
  if (s.has(Modifier::k_rpi)) return std::ceil(x);
  return x;
}

// Clamped to the type's range; 0 for what is not a number.
template <class To, class From>
To to_integer(From x) {
  if (std::isnan(x)) return 0;
  // The first value beyond the range is a power of two, and so is exact.
  const From beyond = std::ldexp(From{1}, std::numeric_limits<To>::digits);
  if (x >= beyond) return std::numeric_limits<To>::max();
  if (x < static_cast<From>(std::numeric_limits<To>::min()))
    return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

uint32_t to_bfloat16(float x) {
  const auto word = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return 0x7FFF;
  return (word + 0x7FFF + (word >> 16 & 1)) >> 16;
}

// To the nearest, ties away from zero; the low 13 bits are 0.
uint32_t to_tf32(float x) {
  const auto word = std::bit_cast<uint32_t>(x);
  return std::isnan(x) ? 0x7FFFFFFF : (word + 0x1000) & ~uint32_t{0x1FFF};
}

// f(T()) with the type that is converted to.
template <class F>
void visit_target(const Step& s, const F& f) {
  const Type to = s.instruction.other_type;
  if (to.kind == Kind::kFloat && to.bits == 32) return f(float());
  if (to.kind == Kind::kFloat && to.bits == 64) return f(double());
  const bool is_signed = to.kind == Kind::kSigned;
  switch (to.kind == Kind::kFloat ? 0 : to.bits) {
    case 8: return is_signed ? f(int8_t()) : f(uint8_t());
    case 16: return is_signed ? f(int16_t()) : f(uint16_t());
    case 32: return is_signed ? f(int32_t()) : f(uint32_t());
    case 64: return is_signed ? f(int64_t()) : f(uint64_t());
    default: wrong_type(s);
  }
}

template <class To, class From>
To convert(const Step& s, From x) {
  constexpr bool kFromFloat = std::is_floating_point_v<From>;
  if constexpr (kFromFloat && std::is_floating_point_v<To>) {
    const To y = static_cast<To>(round(s, x));
    if (!s.has(Modifier::k_sat)) return y;
    return std::isnan(y) ? To{0} : std::clamp(y, To{0}, To{1});
  } else if constexpr (kFromFloat) {
    return to_integer<To>(round(s, x));
  } else {
    return static_cast<To>(x);
  }
}

// Rounding that the plain conversions of C++ do not have.
void require_plain_rounding(const Step& s) {
  if (s.has(Modifier::k_rz) || s.has(Modifier::k_rm) || s.has(Modifier::k_rp)) wrong_type(s);
  if (s.has(Modifier::k_sat) && s.instruction.other_type.kind != Kind::kFloat) wrong_type(s);
}

}  // namespace

void execute_cvt(const Step& s) {
  const Type to = s.instruction.other_type, from = s.instruction.type;
  require_plain_rounding(s);
  if (to.kind == Kind::kTf32) return map<float>(s, to_tf32);
  if (to.kind == Kind::kBFloat16 && to.bits == 16) return map<float>(s, to_bfloat16);
  if (to.kind == Kind::kBFloat16) {  // a pair, the first operand in the upper half
    return map<float, float>(
        s, [](float high, float low) { return to_bfloat16(high) << 16 | to_bfloat16(low); });
  }
  if (from.kind == Kind::kBFloat16 && to.kind == Kind::kFloat && to.bits == 32) {
    return map<uint16_t>(s, [](uint16_t x) { return uint32_t{x} << 16; });
  }
  visit_target(s, [&]<class To>(To) {
    const auto each = [&]<class From>(From) {
      map<From>(s, [&](From x) {
        const To y = convert<To>(s, x);
        // A signed result fills a wider register with its sign.
        if constexpr (std::is_integral_v<To> && std::is_signed_v<To>) {
          return static_cast<int64_t>(y);
        } else {
          return y;
        }
      });
    };
    if (is_float(s)) {
      visit_float(s, each);
    } else {
      visit_integer(s, each);
    }
  });
}

}  // namespace tidemark::ptx
