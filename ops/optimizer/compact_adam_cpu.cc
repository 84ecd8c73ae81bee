// A block of 256 elements at a time: to float32, the step, and back, each a loop that the
// compiler vectorises.
#include "ops/optimizer/compact_adam.h"

#include <algorithm>
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
      : param(args.inout<typename Kind::Param>(first + kAdamParam)),
        grad(float_input(args, first + kAdamGrad)),
        m(args.inout<typename Kind::State>(first + kAdamM)),
        v(args.inout<typename Kind::State>(first + kAdamV)) {
    if constexpr (Kind::kEightBit) {
      m_scale = args.inout<float>(first + kAdamMScale);
      v_scale = args.inout<float>(first + kAdamVScale);
    }
    if constexpr (Kind::kHasMaster) master = args.inout<float>(first + Kind::kMasterAt);
  }
  typename Kind::Param* param;
  FloatInput grad;
  typename Kind::State *m, *v;
  float *m_scale = nullptr, *v_scale = nullptr, *master = nullptr;
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

template <class Kind, Decay decay>
TIDEMARK_INLINE void update_block(const CompactCall& call, const Member<Kind>& member,
                                  int64_t block, int64_t n) {
  alignas(64) float p[kBlock], g[kBlock], m[kBlock], v[kBlock];
  const int64_t at = block * kBlock;
  if (Kind::kHasMaster && !call.first()) {
    convert(member.master + at, n, p);
  } else {
    convert(member.param + at, n, p);
  }
  if (member.grad.bfloat16) {
    convert(static_cast<const BFloat16*>(member.grad.data) + at, n, g);
  } else {
    convert(static_cast<const float*>(member.grad.data) + at, n, g);
  }
  if constexpr (Kind::kEightBit) {
    dequantise<true>(member.m + at, member.m_scale[block], n, m);
    dequantise<false>(member.v + at, member.v_scale[block], n, v);
  } else {
    convert(member.m + at, n, m);
    convert(member.v + at, n, v);
  }
  const AdamStep<decay> step{call.numbers};
  for (int64_t i = 0; i < n; ++i) step(p[i], g[i], m[i], v[i]);
  if constexpr (Kind::kEightBit) {
    member.m_scale[block] = quantise<true>(m, n, member.m + at);
    member.v_scale[block] = quantise<false>(v, n, member.v + at);
  } else {
    convert(m, n, member.m + at);
    convert(v, n, member.v + at);
  }
  if constexpr (Kind::kHasMaster) convert(p, n, member.master + at);
  if constexpr (Kind::kStochastic) {
    alignas(64) uint32_t words[random::kWords];
    random::random_words(call.rounding_key, static_cast<uint64_t>(block) * (kBlock / 4), words,
                         call.update);
    for (int64_t i = 0; i < n; ++i) {
      member.param[at + i] = round_stochastically(p[i], words[i]);
    }
  } else {
    convert(p, n, member.param + at);
  }
}

template <class Kind, Decay decay>
TIDEMARK_INLINE void update_blocks(const CompactCall& call, const Member<Kind>& member,
                                   int64_t begin, int64_t end, int64_t elements) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t rest = elements - block * kBlock;
    // So that the loops over a full block have a constant number of iterations.
    if (rest >= kBlock) {
      update_block<Kind, decay>(call, member, block, kBlock);
    } else {
      update_block<Kind, decay>(call, member, block, rest);
    }
  }
}

template <class Kind>
struct Loops {
  using Update = void (*)(const CompactCall&, const Member<Kind>&, int64_t, int64_t, int64_t);
  Update none, coupled, decoupled;
  Update of(Decay decay) const {
    return decay == Decay::kNone ? none : decay == Decay::kCoupled ? coupled : decoupled;
  }
};

#define TIDEMARK_COMPACT_ADAM(name, ...)                                                \
  struct name {                                                                         \
    template <class Kind, Decay decay>                                                  \
    __VA_ARGS__ static void update(const CompactCall& call, const Member<Kind>& member, \
                                   int64_t begin, int64_t end, int64_t elements) {      \
      update_blocks<Kind, decay>(call, member, begin, end, elements);                   \
    }                                                                                   \
    template <class Kind>                                                               \
    static constexpr Loops<Kind> table() {                                              \
      return {update<Kind, Decay::kNone>, update<Kind, Decay::kCoupled>,                \
              update<Kind, Decay::kDecoupled>};                                         \
    }                                                                                   \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_COMPACT_ADAM)

template <class Kind>
PreparedKernel prepare(Kind, const OpQuery& query) {
  std::vector<int64_t> elements = optimizer::elements_of_members(query, Kind::kInputs);
  return {Bytes(0), [elements = std::move(elements)](const KernelArgs& args) {
            const CompactCall call(args.scalars);
            const auto update = loops<Kind>().of(call.decay);
            for (size_t p = 0; p < elements.size(); ++p) {
              const Member<Kind> member(args, p * Kind::kInputs);
              parallel_chunks(adam_scales(elements[p]), kSerialElements / kBlock,
                              [&](int64_t begin, int64_t end) {
                                update(call, member, begin, end, elements[p]);
                              });
            }
          }};
}

}  // namespace

template <bool master, bool eight_bit>
PreparedKernel prepare_compact_adam_cpu(const OpQuery& query) {
  return visit_kind<master, eight_bit>(query, [&](auto kind) { return prepare(kind, query); });
}
template PreparedKernel prepare_compact_adam_cpu<false, false>(const OpQuery&);
template PreparedKernel prepare_compact_adam_cpu<true, false>(const OpQuery&);
template PreparedKernel prepare_compact_adam_cpu<false, true>(const OpQuery&);
template PreparedKernel prepare_compact_adam_cpu<true, true>(const OpQuery&);

}  // namespace tidemark::optimizer
