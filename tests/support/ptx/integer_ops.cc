// Arithmetic on integers; on floating-point numbers where an instruction exists for both.
#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/support/ptx/instructions.h"
#include "tests/support/ptx/step.h"

namespace tidemark::ptx {
namespace {

// f of two integers, or of two floats.
template <class OfIntegers, class OfFloats>
void map_numbers(const Step& s, const OfIntegers& of_integers, const OfFloats& of_floats) {
  if (is_float(s)) {
    visit_float(s, [&]<class T>(T) { map<T, T>(s, of_floats); });
  } else {
    visit_integer(s, [&]<class T>(T) { map<T, T>(s, of_integers); });
  }
}

// Sums and the lower half of products are the same for signed numbers, and wrap.
template <class F>
void map_wrapping(const Step& s, const F& f) {
  visit_unsigned(
      s, [&]<class T>(T) { map<T, T>(s, [&](T a, T b) { return static_cast<T>(f(a, b)); }); });
}

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

// All bits of a * b.
template <class T>
auto product(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, Signed128, Unsigned128>;
  return static_cast<Wide>(a) * static_cast<Wide>(b);
}

// The part of a product that .lo, .hi or .wide asks for, plus `c`.
template <class T>
uint64_t part_of_product(const Step& s, T a, T b, uint64_t c) {
  const auto all = product(a, b);
  if (s.has(Modifier::k_hi)) {
    return to_register(
        static_cast<T>(static_cast<T>(all >> (8 * sizeof(T))) + static_cast<T>(c)));
  }
  const uint64_t sum = static_cast<uint64_t>(all) + c;
  if (!s.has(Modifier::k_wide)) return to_register(static_cast<T>(sum));
  return sizeof(T) == 2 ? static_cast<uint32_t>(sum) : sum;
}

// Division; `f` gets a divisor that is not 0.
template <class F>
void divide(const Step& s, const F& f) {
  visit_integer(s, [&]<class T>(T) {
    for_lanes(s.mask, [&](int lane) {
      const T a = from_register<T>(s.in(0)[lane]), b = from_register<T>(s.in(1)[lane]);
      if (b == 0) s.fail(Check::kDivision, lane, "the divisor is 0");
      if constexpr (std::is_signed_v<T>) {
        // The one quotient that overflows wraps.
        if (b == -1) {
          const uint64_t negated = 0 - static_cast<uint64_t>(a);
          s.out()[lane] = to_register(static_cast<T>(f(T{5}, T{3}) == T{1} ? negated : 0));
          return;
        }
      }
      s.out()[lane] = to_register(static_cast<T>(f(a, b)));
    });
  });
}

}  // namespace

void execute_add(const Step& s) {
  if (!is_float(s)) return map_wrapping(s, [](auto a, auto b) { return a + b; });
  visit_float(s, [&]<class T>(T) { map<T, T>(s, [](T a, T b) { return a + b; }); });
}

void execute_sub(const Step& s) {
  if (!is_float(s)) return map_wrapping(s, [](auto a, auto b) { return a - b; });
  visit_float(s, [&]<class T>(T) { map<T, T>(s, [](T a, T b) { return a - b; }); });
}

void execute_mul(const Step& s) {
  if (is_float(s)) {
    return visit_float(s, [&]<class T>(T) { map<T, T>(s, [](T a, T b) { return a * b; }); });
  }
  visit_integer(s, [&]<class T>(T) {
    map<T, T>(s, [&](T a, T b) { return part_of_product(s, a, b, 0); });
  });
}

void execute_mad(const Step& s) {
  visit_integer(s, [&]<class T>(T) {
    map<T, T, uint64_t>(s, [&](T a, T b, uint64_t c) { return part_of_product(s, a, b, c); });
  });
}

void execute_div(const Step& s) {
  if (is_float(s)) {
    return visit_float(s, [&]<class T>(T) { map<T, T>(s, [](T a, T b) { return a / b; }); });
  }
  divide(s, [](auto a, auto b) { return a / b; });
}

void execute_rem(const Step& s) {
  divide(s, [](auto a, auto b) { return a % b; });
}

void execute_min(const Step& s) {
  map_numbers(
      s, [](auto a, auto b) { return std::min(a, b); },
      [](auto a, auto b) { return std::fmin(a, b); });
}

void execute_max(const Step& s) {
  map_numbers(
      s, [](auto a, auto b) { return std::max(a, b); },
      [](auto a, auto b) { return std::fmax(a, b); });
}

void execute_neg(const Step& s) {
  if (is_float(s)) {
    return visit_float(s, [&]<class T>(T) { map<T>(s, [](T a) { return -a; }); });
  }
  visit_unsigned(s, [&]<class T>(T) { map<T>(s, [](T a) { return static_cast<T>(0 - a); }); });
}

void execute_abs(const Step& s) {
  if (is_float(s)) {
    return visit_float(s, [&]<class T>(T) { map<T>(s, [](T a) { return std::fabs(a); }); });
  }
  visit_integer(s, [&]<class T>(T) {
    map<T>(s, [](T a) {
      return static_cast<std::make_unsigned_t<T>>(a < T{0} ? 0 - static_cast<uint64_t>(a)
                                                           : static_cast<uint64_t>(a));
    });
  });
}

}  // namespace tidemark::ptx
