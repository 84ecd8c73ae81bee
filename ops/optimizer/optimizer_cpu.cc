#include "ops/kernels/strided.h"
#include "ops/optimizer/functors.h"
#include "ops/optimizer/kernels.h"

namespace tidemark::optimizer {

PreparedKernel prepare_sgd_cpu(const OpQuery& query) {
  const StridedLoop loop =
      make_loop(query.inputs[0].shape, {&query.inputs[0], &query.inputs[1]});
  return {Bytes(0), [loop](const KernelArgs& args) {
            const SgdNumbers numbers(args.scalars);
            const auto step = [&](const auto& f) {
              apply(loop, f, args.inout<float>(0), args.in<float>(1));
            };
            if (numbers.weight_decay == 0) return step(SgdStep<false>{numbers});
            step(SgdStep<true>{numbers});
          }};
}

PreparedKernel prepare_sgd_momentum_cpu(const OpQuery& query) {
  const auto& in = query.inputs;
  const StridedLoop loop = make_loop(in[0].shape, {&in[0], &in[1], &in[2]});
  return {Bytes(0), [loop](const KernelArgs& args) {
            with_sgd_momentum_step(args.scalars, [&](const auto& f) {
              apply(loop, f, args.inout<float>(0), args.in<float>(1), args.inout<float>(2));
            });
          }};
}

PreparedKernel prepare_adam_cpu(const OpQuery& query) {
  const auto& in = query.inputs;
  const StridedLoop loop = make_loop(in[0].shape, {&in[0], &in[1], &in[2], &in[3]});
  return {Bytes(0), [loop](const KernelArgs& args) {
            const AdamNumbers numbers(args.scalars);
            const auto step = [&](const auto& f) {
              apply(loop, f, args.inout<float>(0), args.in<float>(1), args.inout<float>(2),
                    args.inout<float>(3));
            };
            if (numbers.weight_decay == 0) return step(AdamStep<Decay::kNone>{numbers});
            if (args.scalars[6] != 0) return step(AdamStep<Decay::kDecoupled>{numbers});
            step(AdamStep<Decay::kCoupled>{numbers});
          }};
}

PreparedKernel prepare_clip_cpu(const OpQuery& query) {
  return {Bytes(0), [n = query.inputs[0].shape.elements()](const KernelArgs& args) {
            float* grad = args.inout<float>(0);
            const float factor =
                clip_factor(*args.in<float>(1), static_cast<float>(args.scalars[0]));
            if (factor == 1) return;
            parallel_for(n, [=](int64_t i) { grad[i] *= factor; });
          }};
}

}  // namespace tidemark::optimizer
