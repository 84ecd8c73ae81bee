// A block of 256 elements at a time: to float32, the step, and back, each a loop that the
// compiler vectorises.
#include "ops/optimizer/compact.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "ops/kernels/any_float.h"
#include "ops/kernels/parallel_for.h"
#include "ops/optimizer/dynamic_map.h"
#include "ops/optimizer/kernels.h"
#include "ops/optimizer/optimizer.h"
#include "ops/random/words_cpu.h"

namespace tidemark::optimizer {
namespace {

constexpr int64_t kBlock = kQuantisedBlock;
static_assert(kBlock == random::kWords);

// The tensors of one parameter.
template <class Kind>
struct Member {
  Member(const KernelArgs& args, size_t first)
      : param(args.inout<typename Kind::Param>(first + kParam)),
        grad(float_input(args, first + kGrad)) {
    for (size_t s = 0; s < Kind::kStates; ++s) {
      state[s] = args.inout<typename Kind::State>(first + kState + s);
      if constexpr (Kind::kEightBit) scale[s] = args.inout<float>(first + Kind::kScale + s);
    }
    if constexpr (Kind::kHasMaster) master = args.inout<float>(first + Kind::kMaster);
  }
  typename Kind::Param* param;
  FloatInput grad;
  std::array<typename Kind::State*, Kind::kStates> state{};
  std::array<float*, Kind::kStates> scale{};
  float* master = nullptr;
};

template <class From, class To>
TIDEMARK_INLINE void convert(const From* __restrict from, int64_t n, To* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

template <bool kSigned>
TIDEMARK_INLINE void dequantise(const uint8_t* __restrict codes, float scale, int64_t n,
                                float* __restrict x) {
  alignas(64) int32_t wide[kBlock];
  convert(codes, n, wide);
  for (int64_t i = 0; i < n; ++i) x[i] = DynamicMap<kSigned>::value(wide[i]) * scale;
}

// Returns the scale. Where that is 0, 0 / 0 has the code of 0.
template <bool kSigned>
TIDEMARK_INLINE float quantise(const float* __restrict x, int64_t n,
                               uint8_t* __restrict codes) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, magnitude_bits(x[i]));
  const float scale = std::bit_cast<float>(largest);
  alignas(64) int32_t wide[kBlock];
  for (int64_t i = 0; i < n; ++i) wide[i] = DynamicMap<kSigned>::code(x[i] / scale);
  for (int64_t i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(wide[i]);
  return scale;
}

// State `s`; in 8 bits, means have a sign and variances, state 1, have none.
template <size_t s, class Kind>
TIDEMARK_INLINE void load_state(const Member<Kind>& member, int64_t block, int64_t n,
                                float* to) {
  const auto* const from = member.state[s] + block * kBlock;
  if constexpr (Kind::kEightBit) {
    dequantise<s == 0>(from, member.scale[s][block], n, to);
  } else {
    convert(from, n, to);
  }
}
template <size_t s, class Kind>
TIDEMARK_INLINE void store_state(const float* from, int64_t block, int64_t n,
                                 const Member<Kind>& member) {
  auto* const to = member.state[s] + block * kBlock;
  if constexpr (Kind::kEightBit) {
    member.scale[s][block] = quantise<s == 0>(from, n, to);
  } else {
    convert(from, n, to);
  }
}

template <class Kind, size_t... s>
TIDEMARK_INLINE void update_block(const typename Kind::Rule& rule, const Member<Kind>& member,
                                  int64_t block, int64_t n, std::index_sequence<s...>) {
  Elements<typename Kind::Rule, kBlock> x;
  const int64_t at = block * kBlock;
  if (Kind::kHasMaster && !rule.first) {
    convert(member.master + at, n, x.param);
  } else {
    convert(member.param + at, n, x.param);
  }
  if (member.grad.bfloat16) {
    convert(static_cast<const BFloat16*>(member.grad.data) + at, n, x.grad);
  } else {
    convert(static_cast<const float*>(member.grad.data) + at, n, x.grad);
  }
  (load_state<s>(member, block, n, x.state[s]), ...);
  x.update(rule, n);
  (store_state<s>(x.state[s], block, n, member), ...);
  if constexpr (Kind::kHasMaster) convert(x.param, n, member.master + at);
  if constexpr (Kind::kStochastic) {
    alignas(64) uint32_t words[random::kWords];
    random::random_words(rule.rounding_key, static_cast<uint64_t>(block) * (kBlock / 4), words,
                         rule.update);
    for (int64_t i = 0; i < n; ++i) {
      member.param[at + i] = round_stochastically(x.param[i], words[i]);
    }
  } else {
    convert(x.param, n, member.param + at);
  }
}

template <class Kind>
TIDEMARK_INLINE void update_blocks(const typename Kind::Rule& rule, const Member<Kind>& member,
                                   int64_t begin, int64_t end, int64_t elements) {
  constexpr auto kStates = std::make_index_sequence<Kind::kStates>();
  for (int64_t block = begin; block < end; ++block) {
    const int64_t rest = elements - block * kBlock;
    // So that the loops over a full block have a constant number of iterations.
    if (rest >= kBlock) {
      update_block(rule, member, block, kBlock, kStates);
    } else {
      update_block(rule, member, block, rest, kStates);
    }
  }
}

template <class Kind>
struct Loops {
  void (*update)(const typename Kind::Rule&, const Member<Kind>&, int64_t, int64_t, int64_t);
};

#define TIDEMARK_COMPACT_STEP(name, ...)                                                   \
  struct name {                                                                            \
    template <class Kind>                                                                  \
    __VA_ARGS__ static void update(const typename Kind::Rule& rule,                        \
                                   const Member<Kind>& member, int64_t begin, int64_t end, \
                                   int64_t elements) {                                     \
      update_blocks(rule, member, begin, end, elements);                                   \
    }                                                                                      \
    template <class Kind>                                                                  \
    static constexpr Loops<Kind> table() {                                                 \
      return {update<Kind>};                                                               \
    }                                                                                      \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_COMPACT_STEP)

template <class Kind>
PreparedKernel prepare(Kind, const OpQuery& query) {
  std::vector<int64_t> elements = optimizer::elements_of_members(query, Kind::kInputs);
  return {Bytes(0), [elements = std::move(elements)](const KernelArgs& args) {
            const typename Kind::Rule rule(args.scalars);
            for (size_t p = 0; p < elements.size(); ++p) {
              const Member<Kind> member(args, p * Kind::kInputs);
              parallel_chunks(adam_scales(elements[p]), kSerialElements / kBlock,
                              [&](int64_t begin, int64_t end) {
                                loops<Kind>().update(rule, member, begin, end, elements[p]);
                              });
            }
          }};
}

}  // namespace

template <class Rule, bool master, bool eight_bit>
PreparedKernel prepare_compact_cpu(const OpQuery& query) {
  return visit_kind<Rule, master, eight_bit>(query,
                                             [&](auto kind) { return prepare(kind, query); });
}
template PreparedKernel prepare_compact_cpu<AdamRule, false, false>(const OpQuery&);
template PreparedKernel prepare_compact_cpu<AdamRule, true, false>(const OpQuery&);
template PreparedKernel prepare_compact_cpu<AdamRule, false, true>(const OpQuery&);
template PreparedKernel prepare_compact_cpu<AdamRule, true, true>(const OpQuery&);
template PreparedKernel prepare_compact_cpu<SgdRule<false>, true, false>(const OpQuery&);
template PreparedKernel prepare_compact_cpu<SgdRule<true>, true, false>(const OpQuery&);

}  // namespace tidemark::optimizer
