// One kernel for each parameter: value, gradient and state are read and written once.
#include "ops/kernels/map_cuda.cuh"
#include "ops/optimizer/functors.h"
#include "ops/optimizer/optimizer.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

PreparedKernel prepare_sgd(const OpQuery& query) {
  const auto& in = query.inputs;
  const PackedLoop loop = pack(make_loop(in[0].shape, {&in[0], &in[1]}), {in[0], in[1]});
  return {Bytes(0), [loop](const KernelArgs& args) {
            const SgdNumbers numbers(args.scalars);
            const auto step = [&](const auto& f) {
              apply_cuda(loop, args, f, Updates<float>{args.inout<float>(0)},
                         Reads<const float>{args.in<float>(1)});
            };
            if (numbers.weight_decay == 0) return step(SgdStep<false>{numbers});
            step(SgdStep<true>{numbers});
          }};
}

PreparedKernel prepare_sgd_momentum(const OpQuery& query) {
  const auto& in = query.inputs;
  const PackedLoop loop =
      pack(make_loop(in[0].shape, {&in[0], &in[1], &in[2]}), {in[0], in[1], in[2]});
  return {Bytes(0), [loop](const KernelArgs& args) {
            with_sgd_momentum_step(args.scalars, [&](const auto& f) {
              apply_cuda(loop, args, f, Updates<float>{args.inout<float>(0)},
                         Reads<const float>{args.in<float>(1)},
                         Updates<float>{args.inout<float>(2)});
            });
          }};
}

PreparedKernel prepare_adam(const OpQuery& query) {
  const auto& in = query.inputs;
  const PackedLoop loop = pack(make_loop(in[0].shape, {&in[0], &in[1], &in[2], &in[3]}),
                               {in[0], in[1], in[2], in[3]});
  return {Bytes(0), [loop](const KernelArgs& args) {
            const AdamNumbers numbers(args.scalars);
            const auto step = [&](const auto& f) {
              apply_cuda(loop, args, f, Updates<float>{args.inout<float>(0)},
                         Reads<const float>{args.in<float>(1)},
                         Updates<float>{args.inout<float>(2)},
                         Updates<float>{args.inout<float>(3)});
            };
            if (numbers.weight_decay == 0) return step(AdamStep<Decay::kNone>{numbers});
            if (args.scalars[6] != 0) return step(AdamStep<Decay::kDecoupled>{numbers});
            step(AdamStep<Decay::kCoupled>{numbers});
          }};
}

__global__ void clip_kernel(int64_t n, float max_norm, float* grad, const float* norm) {
  const float factor = clip_factor(*norm, max_norm);
  const int64_t i = thread_index();
  if (factor != 1 && i < n) grad[i] *= factor;
}

PreparedKernel prepare_clip(const OpQuery& query) {
  return {Bytes(0), [n = query.inputs[0].shape.elements()](const KernelArgs& args) {
            launch(args, n, clip_kernel, n, static_cast<float>(args.scalars[0]),
                   args.inout<float>(0), args.in<float>(1));
          }};
}

}  // namespace

void register_optimizer_cuda() {
  set_kernel(kSgdStep, Backend::kCuda, prepare_sgd);
  set_kernel(kSgdMomentumStep, Backend::kCuda, prepare_sgd_momentum);
  set_kernel(kAdamStep, Backend::kCuda, prepare_adam);
  set_kernel(kClip, Backend::kCuda, prepare_clip);
}

}  // namespace tidemark
