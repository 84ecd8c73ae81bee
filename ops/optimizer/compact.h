// Private to optimizer/: what the kernels of compact steps share on all devices. `Kind` says
// by which rule a parameter is updated, and how it and its state are stored; everything is
// computed in float32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/optimizer/functors.h"
#include "ops/registry/op.h"
#include "runtime/core/bfloat16.h"
#include "runtime/core/host_device.h"

namespace tidemark {

// Positions within a parameter's group of inputs. Tensors of state follow, then their scales if
// they have 8 bits, then the master.
enum : size_t { kParam, kGrad, kState };

template <class R, class T, bool master, bool eight_bit>
struct CompactKind {
  using Rule = R;
  using Param = T;
  using State = std::conditional_t<eight_bit, uint8_t, float>;
  static constexpr bool kHasMaster = master, kEightBit = eight_bit;
  // bfloat16 without a master is rounded at random.
  static constexpr bool kStochastic = !master && std::is_same_v<T, BFloat16>;
  static constexpr size_t kStates = R::kStates;
  static constexpr size_t kScale = kState + kStates;
  static constexpr size_t kMaster = kScale + (eight_bit ? kStates : 0);
  static constexpr size_t kInputs = kMaster + (master ? 1 : 0);
};

// Calls visit(CompactKind<...>()) with the kind of an operator's calls.
template <class Rule, bool master, bool eight_bit, class Visitor>
auto visit_kind(const OpQuery& query, const Visitor& visit) {
  if constexpr (!master && eight_bit) {
    if (query.inputs[kParam].dtype == DType::kFloat32) {
      return visit(CompactKind<Rule, float, false, true>());
    }
  }
  return visit(CompactKind<Rule, BFloat16, master, eight_bit>());
}

// Elements of a parameter and what belongs to it, in float32. A rule without state uses
// none.
template <class Rule, int kCount>
struct Elements {
  // Updates the first `count`.
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void update(const Rule& rule, int64_t count) {
    rule.with_step(Updater{*this, count});
  }

  alignas(64) float param[kCount], grad[kCount],
      state[Rule::kStates == 0 ? 1 : Rule::kStates][kCount];

 private:
  struct Updater {
    Elements& of;
    int64_t count;

    template <class Step>
    TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void operator()(const Step& step) const {
      each(step, std::make_index_sequence<Rule::kStates>());
    }
    template <class Step, size_t... S>
    TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void each(const Step& step,
                                                   std::index_sequence<S...>) const {
      for (int64_t i = 0; i < count; ++i) step(of.param[i], of.grad[i], of.state[S][i]...);
    }
  };
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
