// Arithmetic on floating-point numbers. Approximations are computed exactly and rounded: a
// GPU's differ by a few units in the last place.
#include <cfenv>
#include <cmath>

#include "tests/support/ptx/instructions.h"
#include "tests/support/ptx/step.h"

namespace tidemark::ptx {
namespace {

// f(x) for each lane, with subnormals as zeros where the instruction flushes them.
template <class F>
void map_function(const Step& s, const F& f) {
  const bool flush = s.has(Modifier::k_ftz);
  visit_float(s, [&]<class T>(T) {
    const auto flushed = [flush](T x) {
      return flush && std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T{0}, x) : x;
    };
    map<T>(s, [&](T x) { return flushed(f(flushed(x))); });
  });
}

}  // namespace

void execute_fma(const Step& s) {
  const bool down = s.has(Modifier::k_rm);
  if (down) std::fesetround(FE_DOWNWARD);
  visit_float(
      s, [&]<class T>(T) { map<T, T, T>(s, [](T a, T b, T c) { return std::fma(a, b, c); }); });
  if (down) std::fesetround(FE_TONEAREST);
}

void execute_rcp(const Step& s) {
  map_function(s, [](auto x) { return 1 / x; });
}
void execute_sqrt(const Step& s) {
  map_function(s, [](auto x) { return std::sqrt(x); });
}
void execute_rsqrt(const Step& s) {
  map_function(s, [](auto x) { return 1 / std::sqrt(x); });
}
void execute_ex2(const Step& s) {
  map_function(s, [](auto x) { return std::exp2(x); });
}
void execute_lg2(const Step& s) {
  map_function(s, [](auto x) { return std::log2(x); });
}
void execute_sin(const Step& s) {
  map_function(s, [](auto x) { return std::sin(x); });
}
void execute_cos(const Step& s) {
  map_function(s, [](auto x) { return std::cos(x); });
}

// The sign of the first operand, the magnitude of the second.
void execute_copysign(const Step& s) {
  visit_float(s, [&]<class T>(T) {
    map<T, T>(s, [](T sign, T magnitude) { return std::copysign(magnitude, sign); });
  });
}

}  // namespace tidemark::ptx
