// Private to optimizer/: what the kernels of compact Adam steps share on all devices. `Kind`
// says how a parameter and its state are stored; everything is computed in float32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/optimizer/functors.h"
#include "ops/registry/op.h"
#include "runtime/core/bfloat16.h"
#include "runtime/core/host_device.h"

namespace tidemark {

// Positions within a parameter's group of inputs.
enum : size_t { kAdamParam, kAdamGrad, kAdamM, kAdamV, kAdamMScale, kAdamVScale };

template <class T, bool master, bool eight_bit>
struct CompactKind {
  using Param = T;
  using State = std::conditional_t<eight_bit, uint8_t, float>;
  static constexpr bool kHasMaster = master, kEightBit = eight_bit;
  // bfloat16 without a master is rounded at random.
  static constexpr bool kStochastic = !master && std::is_same_v<T, BFloat16>;
  static constexpr size_t kMasterAt = eight_bit ? 6 : 4;
  static constexpr size_t kInputs = kMasterAt + (master ? 1 : 0);
};

// Calls visit(CompactKind<...>()) with the kind of an operator's calls.
template <bool master, bool eight_bit, class Visitor>
auto visit_kind(const OpQuery& query, const Visitor& visit) {
  if constexpr (!master && eight_bit) {
    if (query.inputs[kAdamParam].dtype == DType::kFloat32) {
      return visit(CompactKind<float, false, true>());
    }
  }
  return visit(CompactKind<BFloat16, master, eight_bit>());
}

// The scalars of a call beyond AdamNumbers.
struct CompactCall {
  explicit CompactCall(const Scalars& s)
      : numbers(s),
        decay(s[4] == 0   ? Decay::kNone
              : s[6] != 0 ? Decay::kDecoupled
                          : Decay::kCoupled),
        update(static_cast<uint64_t>(s[5])),
        rounding_key(static_cast<uint64_t>(s[7])) {}
  TIDEMARK_HOST_DEVICE bool first() const { return update == 1; }

  AdamNumbers numbers;
  Decay decay;
  uint64_t update;        // of these parameters, counted from 1
  uint64_t rounding_key;  // element e takes word e % 4 of the Philox block (e / 4, update)
};

// One of the two neighbours of `value`, each with the probability that makes the mean exact.
// `random`: its lower 16 bits are used. NaN stays NaN.
TIDEMARK_HOST_DEVICE TIDEMARK_INLINE BFloat16 round_stochastically(float value,
                                                                   uint32_t random) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  const uint32_t up = (all + (random & 0xFFFF)) >> 16, quiet = all >> 16 | 0x40;
  BFloat16 rounded;
  rounded.bits = static_cast<uint16_t>((all & 0x7FFFFFFF) > 0x7F800000 ? quiet : up);
  return rounded;
}

}  // namespace tidemark
