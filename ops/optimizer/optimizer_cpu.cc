#include <utility>
#include <vector>

#include "ops/kernels/strided.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/optimizer/functors.h"
#include "ops/optimizer/kernels.h"

namespace tidemark::optimizer {
namespace {

// Applies a functor to one parameter after the other, each with `count` operands.
template <size_t count>
class ParameterLoops {
 public:
  explicit ParameterLoops(const OpQuery& query) {
    for (size_t i = 0; i < query.inputs.size(); i += count) {
      loops_.push_back(make(query.inputs.subspan(i, count), std::make_index_sequence<count>()));
    }
  }
  template <class F>
  void run(const KernelArgs& args, const F& f) const {
    for (size_t g = 0; g < loops_.size(); ++g) {
      apply_to(loops_[g], args, f, g * count, std::make_index_sequence<count>());
    }
  }

 private:
  template <size_t... I>
  static StridedLoop make(std::span<const TensorMeta> metas, std::index_sequence<I...>) {
    return make_loop(metas[0].shape, {&metas[I]...});
  }
  // Operand 1 is the gradient, which is only read.
  template <size_t i>
  static auto operand(const KernelArgs& args, size_t first) {
    if constexpr (i == 1) {
      return args.in<float>(first + i);
    } else {
      return args.inout<float>(first + i);
    }
  }
  template <class F, size_t... I>
  static void apply_to(const StridedLoop& loop, const KernelArgs& args, const F& f,
                       size_t first, std::index_sequence<I...>) {
    apply(loop, f, operand<I>(args, first)...);
  }

  std::vector<StridedLoop> loops_;
};

}  // namespace

PreparedKernel prepare_sgd_cpu(const OpQuery& query) {
  return {Bytes(0), [loops = ParameterLoops<2>(query)](const KernelArgs& args) {
            SgdRule<false>(args.scalars).with_step([&](const auto& f) { loops.run(args, f); });
          }};
}

PreparedKernel prepare_sgd_momentum_cpu(const OpQuery& query) {
  return {Bytes(0), [loops = ParameterLoops<3>(query)](const KernelArgs& args) {
            SgdRule<true>(args.scalars).with_step([&](const auto& f) { loops.run(args, f); });
          }};
}

PreparedKernel prepare_adam_cpu(const OpQuery& query) {
  return {Bytes(0), [loops = ParameterLoops<4>(query)](const KernelArgs& args) {
            AdamRule(args.scalars).with_step([&](const auto& f) { loops.run(args, f); });
          }};
}

PreparedKernel prepare_clip_cpu(const OpQuery& query) {
  std::vector<int64_t> elements = optimizer::elements_of_members(query, 2);
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [elements](const KernelArgs& args) {
              const float factor =
                  clip_factor(*args.in<float>(1), static_cast<float>(args.scalars[0]));
              if (factor == 1) return;
              for (size_t g = 0; g < elements.size(); ++g) {
                T* grad = args.inout<T>(2 * g);
                parallel_for(elements[g], [=](int64_t i) { grad[i] = grad[i] * factor; });
              }
            }};
  });
}

}  // namespace tidemark::optimizer
