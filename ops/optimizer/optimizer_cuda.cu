// One kernel handles dozens of parameters, and reads and writes value, gradient and state once.
#include <algorithm>
#include <utility>
#include <vector>

#include "ops/kernels/map_cuda.cuh"
#include "ops/kernels/members_cuda.cuh"
#include "ops/optimizer/functors.h"
#include "ops/optimizer/kernels.h"
#include "ops/optimizer/optimizer.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

template <int kWidth, class F, class... Operand>
__global__ void __launch_bounds__(kLaunchThreads)
    update_kernel(const __grid_constant__ Members<sizeof...(Operand)> members, F f) {
  const auto& member = member_of_block(members);
  const int64_t begin =
      ((blockIdx.x - member.first_block) * kLaunchThreads + threadIdx.x) * kWidth;
  const auto apply_at = [&]<int kLanes, size_t... I>(int64_t first, std::index_sequence<I...> o,
                                                     std::integral_constant<int, kLanes>) {
    const int64_t at[] = {((void)I, first)...};
    const bool repeats[sizeof...(I)] = {};
    detail::apply_pack<kLanes>(at, repeats, f, o, Operand{member.at[I]}...);
  };
  constexpr auto kOperands = std::index_sequence_for<Operand...>();
  if (begin + kWidth <= member.elements) {
    apply_at(begin, kOperands, std::integral_constant<int, kWidth>());
    return;
  }
  for (int64_t e = begin; e < member.elements; ++e) {
    apply_at(e, kOperands, std::integral_constant<int, 1>());
  }
}

// Applies a functor to all parameters of a call. `Operand`: how each operand of one is used.
template <class... Operand>
class Steps {
 public:
  explicit Steps(const OpQuery& query) {
    const auto& in = query.inputs;
    for (const TensorMeta& input : in) {
      gapless_ = gapless_ && input.is_contiguous();
      wide_ = wide_ && input.offset % kPackElements == 0;
    }
    for (size_t i = 0; i < in.size(); i += kOperands) {
      elements_.push_back(in[i].shape.elements());
      if (!gapless_) loops_.push_back(make(in.subspan(i, kOperands), kIndices));
    }
  }

  template <class F>
  void run(const KernelArgs& args, const F& f) const {
    if (!gapless_) {
      for (size_t p = 0; p < loops_.size(); ++p) apply_to(loops_[p], args, f, p, kIndices);
      return;
    }
    for (size_t p = 0; p < elements_.size(); p += kMaxMembers) run_members(args, f, p);
  }

 private:
  static constexpr size_t kOperands = sizeof...(Operand);
  static constexpr auto kIndices = std::index_sequence_for<Operand...>();

  template <size_t... I>
  static PackedLoop make(std::span<const TensorMeta> metas, std::index_sequence<I...>) {
    return unpacked(make_loop(metas[0].shape, {&metas[I]...}));
  }
  template <class F, size_t... I>
  static void apply_to(const PackedLoop& loop, const KernelArgs& args, const F& f, size_t p,
                       std::index_sequence<I...>) {
    apply_cuda<kWalkElements>(loop, args, f, Operand{args.inout<float>(p * kOperands + I)}...);
  }

  template <class F>
  void run_members(const KernelArgs& args, const F& f, size_t first) const {
    Members<kOperands> members;
    const int64_t of_block = kLaunchThreads * (wide_ ? kPackElements : 1);
    const size_t end = std::min(first + kMaxMembers, elements_.size());
    for (size_t p = first; p < end; ++p) {
      auto& member = members.add(elements_[p], of_block);
      for (size_t k = 0; k < kOperands; ++k) {
        member.at[k] = args.inout<float>(p * kOperands + k);
      }
    }
    launch_blocks(
        args, members.blocks, kLaunchThreads,
        wide_ ? update_kernel<kPackElements, F, Operand...> : update_kernel<1, F, Operand...>,
        members, f);
  }

  bool gapless_ = true;
  bool wide_ = true;
  std::vector<int64_t> elements_;  // per parameter
  std::vector<PackedLoop> loops_;  // where some operands are not gapless
};

using Value = Updates<float>;
using Gradient = Reads<const float>;

PreparedKernel prepare_sgd(const OpQuery& query) {
  return {Bytes(0), [steps = Steps<Value, Gradient>(query)](const KernelArgs& args) {
            SgdRule<false>(args.scalars).with_step([&](const auto& f) { steps.run(args, f); });
          }};
}

PreparedKernel prepare_sgd_momentum(const OpQuery& query) {
  return {Bytes(0), [steps = Steps<Value, Gradient, Value>(query)](const KernelArgs& args) {
            SgdRule<true>(args.scalars).with_step([&](const auto& f) { steps.run(args, f); });
          }};
}

PreparedKernel prepare_adam(const OpQuery& query) {
  return {Bytes(0),
          [steps = Steps<Value, Gradient, Value, Value>(query)](const KernelArgs& args) {
            AdamRule(args.scalars).with_step([&](const auto& f) { steps.run(args, f); });
          }};
}

constexpr int64_t kClipRun = 8 * kLaunchThreads;  // elements that one block scales

// Operands of a member: gradient, norm.
template <class T>
__global__ void __launch_bounds__(kLaunchThreads)
    clip_kernel(const __grid_constant__ Members<2, void> members, float max_norm) {
  const auto& member = member_of_block(members);
  T* const grad = static_cast<T*>(member.at[0]);
  const float factor = clip_factor(*static_cast<const float*>(member.at[1]), max_norm);
  if (factor == 1) return;
  const int64_t begin = (blockIdx.x - member.first_block) * kClipRun;
  const int64_t end = min(begin + kClipRun, member.elements);
  for (int64_t i = begin + threadIdx.x; i < end; i += kLaunchThreads)
    grad[i] = grad[i] * factor;
}

PreparedKernel prepare_clip(const OpQuery& query) {
  std::vector<int64_t> elements = optimizer::elements_of_members(query, 2);
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [elements](const KernelArgs& args) {
              for (size_t first = 0; first < elements.size(); first += kMaxMembers) {
                Members<2, void> members;
                const size_t end = std::min(first + kMaxMembers, elements.size());
                for (size_t i = first; i < end; ++i) {
                  auto& member = members.add(elements[i], kClipRun);
                  for (size_t k = 0; k < 2; ++k) member.at[k] = args.inout<void>(2 * i + k);
                }
                launch_blocks(args, members.blocks, kLaunchThreads, clip_kernel<T>, members,
                              static_cast<float>(args.scalars[0]));
              }
            }};
  });
}

}  // namespace

void register_optimizer_cuda() {
  set_kernel(kSgdStep, Backend::kCuda, prepare_sgd);
  set_kernel(kSgdMomentumStep, Backend::kCuda, prepare_sgd_momentum);
  set_kernel(kAdamStep, Backend::kCuda, prepare_adam);
  set_kernel(kClip, Backend::kCuda, prepare_clip);
}

}  // namespace tidemark
