// The operands of an instruction's implementation: the registers of one warp, and the lanes
// that execute the instruction.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "tests/support/ptx/kernel.h"
#include "tests/support/ptx/violation.h"

namespace tidemark::ptx {

class Block;

// A register's values in all lanes of a warp, zero-extended.
using Lanes = uint64_t[kLanes];

struct Step {
  Block& block;
  Lanes* registers;
  LaneMask* defined;  // of each register, the lanes in which it has a value
  const Instruction& instruction;
  LaneMask mask;  // not 0
  int warp;
  LaneMask alive;  // lanes that have not exited

  const Lanes& in(int i) const { return registers[instruction.in[static_cast<size_t>(i)]]; }
  Lanes& out(int i = 0) const { return registers[instruction.out[static_cast<size_t>(i)]]; }
  bool has(Modifier m) const { return instruction.has(m); }
  int thread(int lane) const { return warp * kLanes + lane; }

  // Throws Violation with the place of this instruction.
  [[noreturn]] void fail(Check check, int lane, const std::string& what) const;
};

// REQUIRES: the mask is not 0.
inline int first_lane(LaneMask mask) {
  return std::countr_zero(mask | LaneMask{1} << (kLanes - 1));
}

template <class F>
void for_lanes(LaneMask mask, const F& f) {
  if (mask == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

template <class T>
T from_register(uint64_t value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(value));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return (value & 1) != 0;
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
uint64_t to_register(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? 1 : 0;
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

// out 0 = f(in 0, in 1, ...) in each lane, with inputs of the types T. The result's type says
// how wide the output is.
template <class... T, class F>
void map(const Step& s, const F& f) {
  Lanes& out = s.out();
  [&]<size_t... i>(std::index_sequence<i...>) {
    for_lanes(s.mask, [&](int lane) {
      out[lane] = to_register(f(from_register<T>(s.in(static_cast<int>(i))[lane])...));
    });
  }
  (std::index_sequence_for<T...>());
}

[[noreturn]] void wrong_type(const Step& s);

// f(T()) with the one of four types that has the instruction's width; predicates are bytes.
template <class T8, class T16, class T32, class T64, class F>
void visit_width(const Step& s, const F& f) {
  switch (s.instruction.type.bits) {
    case 1:
    case 8: return f(T8());
    case 16: return f(T16());
    case 32: return f(T32());
    case 64: return f(T64());
    default: wrong_type(s);
  }
}
template <class F>
void visit_unsigned(const Step& s, const F& f) {
  visit_width<uint8_t, uint16_t, uint32_t, uint64_t>(s, f);
}
// Signed where the type is.
template <class F>
void visit_integer(const Step& s, const F& f) {
  if (s.instruction.type.kind != Kind::kSigned) return visit_unsigned(s, f);
  visit_width<int8_t, int16_t, int32_t, int64_t>(s, f);
}

template <class F>
void visit_float(const Step& s, const F& f) {
  if (s.instruction.type.kind != Kind::kFloat) wrong_type(s);
  switch (s.instruction.type.bits) {
    case 32: return f(float());
    case 64: return f(double());
    default: wrong_type(s);
  }
}

inline bool is_float(const Step& s) { return s.instruction.type.kind == Kind::kFloat; }

}  // namespace tidemark::ptx
