// Copies, choices, comparisons, addresses.
#include <cmath>

#include "tests/support/ptx/block.h"
#include "tests/support/ptx/instructions.h"
#include "tests/support/ptx/step.h"

namespace tidemark::ptx {
namespace {

uint64_t low_bits(uint64_t value, int bits) {
  return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

template <class T>
bool compare(Modifier how, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool unordered = std::isnan(a) || std::isnan(b);
    switch (how) {
      case Modifier::k_num: return !unordered;
      case Modifier::k_nan: return unordered;
      case Modifier::k_equ: return unordered || a == b;
      case Modifier::k_neu: return unordered || a != b;
      case Modifier::k_ltu: return unordered || a < b;
      case Modifier::k_leu: return unordered || a <= b;
      case Modifier::k_gtu: return unordered || a > b;
      case Modifier::k_geu: return unordered || a >= b;
      case Modifier::k_ne: return !unordered && a != b;
      default: break;
    }
  }
  switch (how) {
    case Modifier::k_eq: return a == b;
    case Modifier::k_ne: return a != b;
    case Modifier::k_lt:
    case Modifier::k_lo: return a < b;
    case Modifier::k_le:
    case Modifier::k_ls: return a <= b;
    case Modifier::k_gt:
    case Modifier::k_hi: return a > b;
    default: return a >= b;
  }
}

}  // namespace

// mov a, b;  mov {a, b}, c;  mov c, {a, b}
void execute_mov(const Step& s) {
  const int bits = s.instruction.type.bits;
  const int outputs = s.instruction.outputs, inputs = s.instruction.inputs;
  if (outputs == 1 && inputs == 1) return map<uint64_t>(s, [](uint64_t a) { return a; });
  for_lanes(s.mask, [&](int lane) {
    uint64_t value = 0;
    for (int i = 0; i < inputs; ++i) {
      value |= low_bits(s.in(i)[lane], bits / inputs) << (i * bits / inputs);
    }
    for (int i = 0; i < outputs; ++i) {
      s.out(i)[lane] = low_bits(value >> (i * bits / outputs), bits / outputs);
    }
  });
}

void execute_selp(const Step& s) {
  map<uint64_t, uint64_t, bool>(s, [](uint64_t a, uint64_t b, bool c) { return c ? a : b; });
}

// p = a ? b;  p|q = (a ? b) and c, (not a ? b) and c
void execute_setp(const Step& s) {
  const auto how = static_cast<Modifier>(s.instruction.compare);
  const auto combine = [&](bool result, int lane) {
    if (s.instruction.inputs < 3) return result;
    const bool c = (s.in(2)[lane] & 1) != 0;
    if (s.has(Modifier::k_and)) return result && c;
    return s.has(Modifier::k_or) ? result || c : result != c;
  };
  const auto each = [&]<class T>(T) {
    for_lanes(s.mask, [&](int lane) {
      const bool result =
          compare(how, from_register<T>(s.in(0)[lane]), from_register<T>(s.in(1)[lane]));
      const bool first = combine(result, lane), second = combine(!result, lane);
      s.out(0)[lane] = first ? 1 : 0;
      if (s.instruction.outputs > 1) s.out(1)[lane] = second ? 1 : 0;
    });
  };
  if (is_float(s)) {
    visit_float(s, each);
  } else {
    visit_integer(s, each);
  }
}

void execute_cvta(const Step& s) {
  const Space space = s.instruction.space;
  const bool from_generic = s.has(Modifier::k_to);
  map<uint64_t>(s, [&](uint64_t address) {
    return from_generic ? Block::from_generic(space, address)
                        : Block::to_generic(space, address);
  });
}

void execute_nothing(const Step&) {}

void execute_trap(const Step& s) {
  s.fail(Check::kTrap, first_lane(s.mask), "the kernel stops itself");
}

}  // namespace tidemark::ptx
