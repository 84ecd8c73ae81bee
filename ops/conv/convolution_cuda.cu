// Convolutions by cuDNN (ops/cudnn), on channels-last activations and weights in place.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ops/conv/conv.h"
#include "ops/conv/kernels.h"
#include "ops/cudnn/convolution.h"
#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/map_cuda.cuh"
#include "ops/kernels/rounded_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using cudnn::Convolution;
using cudnn::ConvolutionPlan;
using cudnn::Pass;

bool on_16_bytes(const TensorMeta& tensor) {
  return tensor.offset * size_of(tensor.dtype).count() % 16 == 0;
}

// cuDNN is told that tensors start at multiples of 16 bytes, which contiguous() ensures.
template <size_t n>
Convolution make_problem(Pass pass, const ConvAttrs<n>& attrs, const TensorMeta& x,
                         const TensorMeta& w, const TensorMeta& y, const OpQuery& query) {
  for (const TensorMeta* tensor : {&x, &w, &y}) {
    TIDEMARK_CHECK(on_16_bytes(*tensor), "a convolution's tensor does not start on 16 bytes");
  }
  const auto list = [](const std::array<int64_t, n>& values) {
    return std::vector<int64_t>(values.begin(), values.end());
  };
  return {pass,
          x.shape,
          w.shape,
          y.shape,
          list(attrs.stride),
          list(attrs.padding),
          list(attrs.dilation),
          query.tf32,
          x.dtype,
          std::string(query.algorithm)};
}

template <size_t n>
Convolution forward_problem(const OpQuery& query) {
  return make_problem(Pass::kForward, query.attr<ConvAttrs<n>>(), query.inputs[0],
                      query.inputs[1], query.outputs[0], query);
}
template <size_t n>
Convolution grad_input_problem(const OpQuery& query) {
  return make_problem(Pass::kGradInput, query.attr<ConvGradInputAttrs<n>>().conv,
                      query.outputs[0], query.inputs[1], query.inputs[0], query);
}
template <size_t n>
Convolution grad_weight_problem(const OpQuery& query) {
  return make_problem(Pass::kGradWeight, query.attr<ConvGradWeightAttrs<n>>().conv,
                      query.inputs[0], query.outputs[0], query.inputs[1], query);
}

std::shared_ptr<const ConvolutionPlan> make_plan(const Convolution& problem) {
  return std::make_shared<const ConvolutionPlan>(problem, CudaContext::current().cudnn());
}

// The pass's other plans.
template <Convolution (*problem)(const OpQuery&)>
std::vector<std::string> list_algorithms(const OpQuery& query) {
  const Convolution its = problem(query);
  if (its.x.elements() == 0 || its.y.elements() == 0) return {};
  return cudnn::other_plans(its, CudaContext::current().cudnn());
}

cudnnHandle_t handle(const KernelArgs& args) {
  return CudaContext::current().cudnn(args.native_stream);
}

struct AddTo {
  template <class T>
  TIDEMARK_HOST_DEVICE void operator()(T& y, const float& bias) const {
    y = y + bias;
  }
};

PreparedKernel nothing() {
  return {Bytes(0), [](const KernelArgs&) {}};
}

void clear(const KernelArgs& args, size_t output) {
  launch_clear(args, args.outputs[output], args.output_metas[output].bytes());
}

// A bias is added by cuDNN, which takes it in y's type, or else by a kernel of our own.
template <size_t n>
PreparedKernel prepare_conv(const OpQuery& query) {
  const TensorMeta& y = query.outputs[0];
  if (y.shape.elements() == 0) return nothing();
  Convolution problem = forward_problem<n>(query);
  problem.bias = query.inputs.size() == 3;
  TIDEMARK_CHECK(!problem.bias || on_16_bytes(query.inputs[2]),
                 "a convolution's bias does not start on 16 bytes");
  const auto plan = make_plan(problem);
  if (plan->adds_bias() && y.dtype == DType::kBFloat16) {
    const RoundedCopy rounded(query.inputs[2]);
    const Bytes library = align_up(plan->workspace());
    return {library + rounded.bytes(), [plan, rounded, library](const KernelArgs& args) {
              auto* const bias = reinterpret_cast<BFloat16*>(args.workspace + library.count());
              rounded.run(args, 2, bias);
              plan->run(handle(args), args.inputs[0], args.inputs[1], args.outputs[0],
                        args.workspace, bias);
            }};
  }
  if (plan->adds_bias()) {
    return {plan->workspace(), [plan](const KernelArgs& args) {
              plan->run(handle(args), args.inputs[0], args.inputs[1], args.outputs[0],
                        args.workspace, args.inputs[2]);
            }};
  }
  const auto add_bias =
      problem.bias ? prepare_add_bias_cuda(query) : std::function<void(const KernelArgs&)>();
  return {plan->workspace(), [plan, add_bias](const KernelArgs& args) {
            plan->run(handle(args), args.inputs[0], args.inputs[1], args.outputs[0],
                      args.workspace);
            if (add_bias) add_bias(args);
          }};
}

template <size_t n>
PreparedKernel prepare_conv_grad_input(const OpQuery& query) {
  if (query.outputs[0].shape.elements() == 0) return nothing();
  const auto plan = make_plan(grad_input_problem<n>(query));
  return {plan->workspace(), [plan](const KernelArgs& args) {
            plan->run(handle(args), args.outputs[0], args.inputs[1], args.inputs[0],
                      args.workspace);
          }};
}

template <size_t n>
PreparedKernel prepare_conv_grad_weight(const OpQuery& query) {
  const auto& attrs = query.attr<ConvGradWeightAttrs<n>>();
  const bool bias = attrs.bias != 0;
  const Shape& gy = query.inputs[1].shape;
  if (gy.elements() == 0) {
    return {Bytes(0), [bias](const KernelArgs& args) {
              clear(args, 0);
              if (bias) clear(args, 1);
            }};
  }
  const auto plan = make_plan(grad_weight_problem<n>(query));
  const ColumnSums sums(1, gy.elements() / gy.back(), gy.back(), 0, gy.back(),
                        vectors_fit(query));
  const Shape& w = query.outputs[0].shape;
  const int64_t partials = plan->partials();
  const ColumnSums joined(1, partials, w.elements(), 0, plan->partial_stride(),
                          /*vectors_fit=*/true);
  // They run one after the other, so they can share a workspace. The partial gradients follow.
  Bytes shared = plan->workspace();
  if (bias) shared = std::max(shared, sums.workspace());
  Bytes workspace = shared;
  if (partials > 1) {
    shared = align_up(std::max(shared, joined.workspace()));
    workspace = shared + size_of(query.outputs[0].dtype) * plan->partial_stride() * partials;
  }
  return {
      workspace, [plan, bias, sums, joined, partials, shared](const KernelArgs& args) {
        void* const gw = partials > 1 ? args.workspace + shared.count() : args.outputs[0];
        plan->run(handle(args), args.inputs[0], gw, args.inputs[1], args.workspace);
        if (partials > 1) {
          joined.run(args, static_cast<const BFloat16*>(gw),
                     {args.outputs[0], DType::kBFloat16}, 1, args.workspace);
        }
        if (!bias) return;
        visit_float(args.input_metas[1].dtype, [&]<class T>(TypeTag<T>) {
          sums.run(args, args.in<T>(1), {args.outputs[1], DType::kFloat32}, 1, args.workspace);
        });
      }};
}

template <size_t n>
void set_kernels(const OpDef& forward, const OpDef& grad_input, const OpDef& grad_weight) {
  set_kernel(forward, Backend::kCuda, prepare_conv<n>, list_algorithms<forward_problem<n>>);
  set_kernel(grad_input, Backend::kCuda, prepare_conv_grad_input<n>,
             list_algorithms<grad_input_problem<n>>);
  set_kernel(grad_weight, Backend::kCuda, prepare_conv_grad_weight<n>,
             list_algorithms<grad_weight_problem<n>>);
}

}  // namespace

std::function<void(const KernelArgs&)> prepare_add_bias_cuda(const OpQuery& query) {
  const TensorMeta &y = query.outputs[0], &bias = query.inputs[2];
  const PackedLoop loop = pack(make_loop(y.shape, {&y, &bias}), {y, bias});
  return [loop](const KernelArgs& args) {
    visit_float(args.output_metas[0].dtype, [&]<class T>(TypeTag<T>) {
      apply_cuda(loop, args, AddTo(), Updates<T>{args.out<T>(0)},
                 Reads<const float>{args.in<float>(2)});
    });
  };
}

void register_convolution_cuda() {
  set_kernels<2>(kConv2d, kConv2dGradInput, kConv2dGradWeight);
  set_kernels<3>(kConv3d, kConv3dGradInput, kConv3dGradWeight);
}

}  // namespace tidemark
