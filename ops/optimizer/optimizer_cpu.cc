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
            const SgdNumbers numbers(args.scalars);
            const auto step = [&]<bool decay, bool first, bool nesterov>() {
              apply(loop, SgdMomentumStep<decay, first, nesterov>{numbers},
                    args.inout<float>(0), args.in<float>(1), args.inout<float>(2));
            };
            const bool decay = numbers.weight_decay != 0;
            const bool nesterov = args.scalars[4] != 0, first = args.scalars[5] != 0;
            switch (decay << 2 | first << 1 | nesterov << 0) {
              case 0b000: return step.template operator()<false, false, false>();
              case 0b001: return step.template operator()<false, false, true>();
              case 0b010: return step.template operator()<false, true, false>();
              case 0b011: return step.template operator()<false, true, true>();
              case 0b100: return step.template operator()<true, false, false>();
              case 0b101: return step.template operator()<true, false, true>();
              case 0b110: return step.template operator()<true, true, false>();
              default: return step.template operator()<true, true, true>();
            }
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

}  // namespace tidemark::optimizer
