// A warp takes 256 elements, each lane 8 in a row. One kernel handles dozens of parameters.
#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "ops/kernels/launch_cuda.cuh"
#include "ops/kernels/map_cuda.cuh"
#include "ops/kernels/members_cuda.cuh"
#include "ops/optimizer/compact.h"
#include "ops/optimizer/dynamic_map.h"
#include "ops/optimizer/kernels.h"
#include "ops/optimizer/optimizer.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"
#include "runtime/core/philox.h"

namespace tidemark {
namespace {

constexpr int kWarp = 32;
constexpr int kLaneElements = kQuantisedBlock / kWarp;
constexpr int64_t kElementsOfBlock = kQuantisedBlock * (kLaunchThreads / kWarp);

// A lane's elements of each tensor; those past the tensor's end are zeros.
struct Run {
  int64_t begin;
  int count;

  // Whether the whole run can be moved as vectors.
  template <class T>
  __device__ bool wide(const T* data) const {
    constexpr size_t kAlign = alignof(detail::Lanes<T, kLaneElements>);
    return count == kLaneElements && reinterpret_cast<size_t>(data + begin) % kAlign == 0;
  }
  template <class T>
  __device__ void load(const T* data, T (&to)[kLaneElements]) const {
    using Lanes = detail::Lanes<T, kLaneElements>;
    if (wide(data)) {
      const Lanes lanes = *reinterpret_cast<const Lanes*>(data + begin);
#pragma unroll
      for (int i = 0; i < kLaneElements; ++i) to[i] = lanes.lane[i];
      return;
    }
#pragma unroll
    for (int i = 0; i < kLaneElements; ++i) to[i] = i < count ? data[begin + i] : T{};
  }
  template <class T>
  __device__ void store(T* data, const T (&from)[kLaneElements]) const {
    using Lanes = detail::Lanes<T, kLaneElements>;
    if (wide(data)) {
      Lanes lanes;
#pragma unroll
      for (int i = 0; i < kLaneElements; ++i) lanes.lane[i] = from[i];
      *reinterpret_cast<Lanes*>(data + begin) = lanes;
      return;
    }
#pragma unroll
    for (int i = 0; i < kLaneElements; ++i) {
      if (i < count) data[begin + i] = from[i];
    }
  }
  __device__ void load_floats(const BFloat16* data, float (&to)[kLaneElements]) const {
    BFloat16 stored[kLaneElements];
    load(data, stored);
#pragma unroll
    for (int i = 0; i < kLaneElements; ++i) to[i] = stored[i];
  }
  __device__ void load_floats(const float* data, float (&to)[kLaneElements]) const {
    load(data, to);
  }
};

template <bool kSigned>
__device__ void dequantise(const Run& run, const uint8_t* codes, const float* scale,
                           float (&x)[kLaneElements]) {
  uint8_t stored[kLaneElements];
  run.load(codes, stored);
  const float unit = run.count > 0 ? *scale : 0;
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) x[i] = DynamicMap<kSigned>::value(stored[i]) * unit;
}

// The scale is that of the warp's elements. All threads of a block call it.
template <bool kSigned>
__device__ void quantise(const Run& run, const float (&x)[kLaneElements], uint8_t* codes,
                         float* scale) {
  int largest = 0;
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) {
    if (i < run.count) largest = max(largest, static_cast<int>(magnitude_bits(x[i])));
  }
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    largest = max(largest, __shfl_xor_sync(0xFFFFFFFF, largest, step));
  }
  const float all = std::bit_cast<float>(largest);  // if 0, 0 / 0 has the code of 0
  uint8_t to[kLaneElements];
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) {
    to[i] = static_cast<uint8_t>(DynamicMap<kSigned>::code(x[i] / all));
  }
  run.store(codes, to);
  if (threadIdx.x % kWarp == 0 && run.count > 0) *scale = all;
}

__device__ void round_lane(const Run& run, const AdamRule& rule,
                           const float (&p)[kLaneElements], BFloat16* param) {
  BFloat16 rounded[kLaneElements];
  const std::array<uint32_t, 2> stream = philox_key(rule.update);
#pragma unroll
  for (int i = 0; i < kLaneElements; i += 4) {
    const std::array<uint32_t, 2> block = philox_key(static_cast<uint64_t>(run.begin + i) / 4);
    const std::array<uint32_t, 4> words =
        philox4x32({block[0], block[1], stream[0], stream[1]}, philox_key(rule.rounding_key));
#pragma unroll
    for (int k = 0; k < 4; ++k) rounded[i + k] = round_stochastically(p[i + k], words[k]);
  }
  run.store(param, rounded);
}

// State `s` of a lane's elements, in the 256-element block `block`; in 8 bits, means have a
// sign and variances, state 1, have none.
template <size_t s, class Kind, class Member>
__device__ void load_state(const Run& run, const Member& member, int64_t block,
                           float (&to)[kLaneElements]) {
  const auto* const from = static_cast<const typename Kind::State*>(member.at[kState + s]);
  if constexpr (Kind::kEightBit) {
    dequantise<s == 0>(run, from,
                       static_cast<const float*>(member.at[Kind::kScale + s]) + block, to);
  } else {
    run.load(from, to);
  }
}
template <size_t s, class Kind, class Member>
__device__ void store_state(const Run& run, const float (&from)[kLaneElements], int64_t block,
                            const Member& member) {
  auto* const to = static_cast<typename Kind::State*>(member.at[kState + s]);
  if constexpr (Kind::kEightBit) {
    quantise<s == 0>(run, from, to, static_cast<float*>(member.at[Kind::kScale + s]) + block);
  } else {
    run.store(to, from);
  }
}

// The last bit of `bfloat16_grads` is the first member's.
template <class Kind, size_t... s>
__device__ void update_lane(const Members<Kind::kInputs, void>& members,
                            const typename Kind::Rule& rule, uint32_t bfloat16_grads,
                            std::index_sequence<s...>) {
  using Param = typename Kind::Param;
  const auto& member = member_of_block(members);
  const int64_t block =
      (blockIdx.x - member.first_block) * (kLaunchThreads / kWarp) + threadIdx.x / kWarp;
  const int64_t rest = member.elements - block * kQuantisedBlock;
  const int skipped = static_cast<int>(threadIdx.x % kWarp) * kLaneElements;
  const Run run{block * kQuantisedBlock + skipped,
                static_cast<int>(min(max(rest - skipped, int64_t{0}), int64_t{kLaneElements}))};

  Param* const param = static_cast<Param*>(member.at[kParam]);
  Elements<typename Kind::Rule, kLaneElements> x;
  if (Kind::kHasMaster && !rule.first) {
    run.load_floats(static_cast<const float*>(member.at[Kind::kMaster]), x.param);
  } else {
    run.load_floats(param, x.param);
  }
  if (bfloat16_grads >> (&member - members.member) & 1) {
    run.load_floats(static_cast<const BFloat16*>(member.at[kGrad]), x.grad);
  } else {
    run.load_floats(static_cast<const float*>(member.at[kGrad]), x.grad);
  }
  (load_state<s, Kind>(run, member, block, x.state[s]), ...);
  x.update(rule, kLaneElements);
  (store_state<s, Kind>(run, x.state[s], block, member), ...);
  if constexpr (Kind::kHasMaster) {
    run.store(static_cast<float*>(member.at[Kind::kMaster]), x.param);
  }
  if constexpr (Kind::kStochastic) {
    round_lane(run, rule, x.param, param);
  } else {
    Param nearest[kLaneElements];
#pragma unroll
    for (int i = 0; i < kLaneElements; ++i) nearest[i] = x.param[i];
    run.store(param, nearest);
  }
}

// `Rule` is the kind's; it has a name of its own so that the kernel's name says what it is.
template <class Kind, class Rule>
__global__ void __launch_bounds__(kLaunchThreads)
    compact_step(const __grid_constant__ Members<Kind::kInputs, void> members,
                 const __grid_constant__ Rule rule, uint32_t bfloat16_grads) {
  update_lane<Kind>(members, rule, bfloat16_grads, std::make_index_sequence<Kind::kStates>());
}

template <class Kind>
PreparedKernel prepare(Kind, const OpQuery& query) {
  std::vector<int64_t> elements = optimizer::elements_of_members(query, Kind::kInputs);
  return {Bytes(0), [elements = std::move(elements)](const KernelArgs& args) {
            for (size_t first = 0; first < elements.size(); first += kMaxMembers) {
              Members<Kind::kInputs, void> members;
              uint32_t bfloat16_grads = 0;
              const size_t end = std::min(first + kMaxMembers, elements.size());
              for (size_t p = first; p < end; ++p) {
                auto& member = members.add(elements[p], kElementsOfBlock);
                for (size_t k = 0; k < Kind::kInputs; ++k) {
                  member.at[k] = args.inout<void>(p * Kind::kInputs + k);
                }
                const TensorMeta& grad = args.input_metas[p * Kind::kInputs + kGrad];
                const bool is_bfloat16 = grad.dtype == DType::kBFloat16;
                bfloat16_grads |= uint32_t{is_bfloat16} << (p - first);
              }
              using Rule = typename Kind::Rule;
              launch_blocks(args, members.blocks, kLaunchThreads, compact_step<Kind, Rule>,
                            members, Rule(args.scalars), bfloat16_grads);
            }
          }};
}
static_assert(kMaxMembers <= 32);

template <class Rule, bool master, bool eight_bit>
PreparedKernel prepare_compact(const OpQuery& query) {
  return visit_kind<Rule, master, eight_bit>(query,
                                             [&](auto kind) { return prepare(kind, query); });
}

}  // namespace

void register_compact_cuda() {
  set_kernel(kAdamBfloat16Step, Backend::kCuda, prepare_compact<AdamRule, false, false>);
  set_kernel(kAdamMasterStep, Backend::kCuda, prepare_compact<AdamRule, true, false>);
  set_kernel(kAdam8bitStep, Backend::kCuda, prepare_compact<AdamRule, false, true>);
  set_kernel(kAdam8bitMasterStep, Backend::kCuda, prepare_compact<AdamRule, true, true>);
  set_kernel(kSgdMasterStep, Backend::kCuda, prepare_compact<SgdRule<false>, true, false>);
  set_kernel(kSgdMomentumMasterStep, Backend::kCuda,
             prepare_compact<SgdRule<true>, true, false>);
}

}  // namespace tidemark
