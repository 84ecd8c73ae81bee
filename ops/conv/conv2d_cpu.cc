#include "ops/conv/conv2d.h"

#include <memory>

#include "ops/dnnl/primitive.h"

namespace tidemark {
namespace {

using onednn::Primitive;
using onednn::WorkspaceLayout;
using Desc = dnnl::memory::desc;

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

// The weight (K, R, S, C / groups) as it lies.
Desc weight_desc(const Shape& w, int64_t groups) {
  using Tag = dnnl::memory::format_tag;
  constexpr auto kFloat = dnnl::memory::data_type::f32;
  if (groups == 1) return {{w[0], w[3], w[1], w[2]}, kFloat, Tag::ohwi};
  return {{groups, w[0] / groups, w[3], w[1], w[2]}, kFloat, Tag::gohwi};
}

struct Geometry {
  explicit Geometry(const Conv2dAttrs& attrs)
      : stride{attrs.stride[0], attrs.stride[1]},
        padding{attrs.padding[0], attrs.padding[1]},
        dilation{attrs.dilation[0] - 1, attrs.dilation[1] - 1} {}
  dnnl::memory::dims stride;
  dnnl::memory::dims padding;
  dnnl::memory::dims dilation;  // oneDNN counts the gaps
};

dnnl::convolution_forward::primitive_desc describe_forward(const Desc& x, const Desc& w,
                                                           const Desc& bias, const Desc& y,
                                                           const Conv2dAttrs& attrs) {
  const Geometry g(attrs);
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_training, kAlgorithm, x,
                                             w, bias, y, g.stride, g.dilation, g.padding,
                                             g.padding);
  return {desc, onednn::attributes(), onednn::engine()};
}

// Backward descriptions take a forward one as a hint, which convolutions do not need.
template <class OpDesc>
dnnl::primitive_desc describe_backward(const OpDesc& desc) {
  return dnnl::primitive_desc(&desc.data, &onednn::attributes(), onednn::engine(), nullptr);
}

// A primitive whose weight may have to be in a layout of its own, in the workspace.
struct Convolution {
  WorkspaceLayout layout;
  std::unique_ptr<Primitive> primitive;
  std::unique_ptr<Primitive> reorder;  // null: the weight is used as it lies
  size_t weight_at = 0;

  // `direction`: 1, the primitive reads the weight; -1, it writes it.
  void set(const dnnl::primitive_desc_base& description, std::initializer_list<int> arguments,
           const Desc& plain, int weight_argument, int direction, int threads) {
    primitive = std::make_unique<Primitive>(description, arguments, threads, layout);
    const Desc fast = primitive->argument(weight_argument);
    reorder = direction > 0 ? onednn::make_reorder(plain, fast, threads, layout)
                            : onednn::make_reorder(fast, plain, threads, layout);
    if (reorder) weight_at = layout.add(Bytes(static_cast<int64_t>(fast.get_size())));
  }
};

}  // namespace

PreparedKernel prepare_conv2d_cpu(const OpQuery& query) {
  const onednn::UseThreads use(query.threads);
  const auto& attrs = query.attr<Conv2dAttrs>();
  const bool bias = query.inputs.size() == 3;
  const Desc w = weight_desc(query.inputs[1].shape, attrs.groups);
  const auto description =
      describe_forward(onednn::nhwc(query.inputs[0].shape), onednn::any_layout(w),
                       bias ? onednn::vector(query.inputs[2].shape[0]) : Desc(),
                       onednn::nhwc(query.outputs[0].shape), attrs);
  auto kernel = std::make_shared<Convolution>();
  if (bias) {
    kernel->set(description, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS}, w,
                DNNL_ARG_WEIGHTS, 1, query.threads);
  } else {
    kernel->set(description, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, w,
                DNNL_ARG_WEIGHTS, 1, query.threads);
  }
  return {kernel->layout.total(), [kernel, bias](const KernelArgs& args) {
            std::byte* weight = args.inputs[1];
            if (kernel->reorder) {
              weight = args.workspace + kernel->weight_at;
              kernel->reorder->run(args.workspace, {args.inputs[1], weight});
            }
            std::byte* bias_or_null = bias ? args.inputs[2] : nullptr;
            kernel->primitive->run(args.workspace,
                                   {args.inputs[0], weight, args.outputs[0], bias_or_null});
          }};
}

PreparedKernel prepare_conv2d_grad_input_cpu(const OpQuery& query) {
  const onednn::UseThreads use(query.threads);
  const auto& attrs = query.attr<Conv2dGradInputAttrs>().conv;
  const Desc w = weight_desc(query.inputs[1].shape, attrs.groups);
  const Geometry g(attrs);
  const auto description = describe_backward(dnnl::convolution_backward_data::desc(
      kAlgorithm, onednn::nhwc(query.outputs[0].shape), onednn::any_layout(w),
      onednn::nhwc(query.inputs[0].shape), g.stride, g.dilation, g.padding, g.padding));
  auto kernel = std::make_shared<Convolution>();
  kernel->set(description, {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC}, w,
              DNNL_ARG_WEIGHTS, 1, query.threads);
  return {kernel->layout.total(), [kernel](const KernelArgs& args) {
            std::byte* weight = args.inputs[1];
            if (kernel->reorder) {
              weight = args.workspace + kernel->weight_at;
              kernel->reorder->run(args.workspace, {args.inputs[1], weight});
            }
            kernel->primitive->run(args.workspace, {args.inputs[0], weight, args.outputs[0]});
          }};
}

PreparedKernel prepare_conv2d_grad_weight_cpu(const OpQuery& query) {
  const onednn::UseThreads use(query.threads);
  const auto& attrs = query.attr<Conv2dGradWeightAttrs>();
  const bool bias = attrs.bias != 0;
  const Desc w = weight_desc(query.outputs[0].shape, attrs.conv.groups);
  const Geometry g(attrs.conv);
  const Desc gbias = bias ? onednn::vector(query.outputs[1].shape[0]) : Desc();
  const auto description = describe_backward(dnnl::convolution_backward_weights::desc(
      kAlgorithm, onednn::nhwc(query.inputs[0].shape), onednn::any_layout(w), gbias,
      onednn::nhwc(query.inputs[1].shape), g.stride, g.dilation, g.padding, g.padding));
  auto kernel = std::make_shared<Convolution>();
  if (bias) {
    kernel->set(description,
                {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS}, w,
                DNNL_ARG_DIFF_WEIGHTS, -1, query.threads);
  } else {
    kernel->set(description, {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS}, w,
                DNNL_ARG_DIFF_WEIGHTS, -1, query.threads);
  }
  return {kernel->layout.total(), [kernel, bias](const KernelArgs& args) {
            std::byte* weight =
                kernel->reorder ? args.workspace + kernel->weight_at : args.outputs[0];
            std::byte* bias_or_null = bias ? args.outputs[1] : nullptr;
            kernel->primitive->run(args.workspace,
                                   {args.inputs[0], args.inputs[1], weight, bias_or_null});
            if (kernel->reorder)
              kernel->reorder->run(args.workspace, {weight, args.outputs[0]});
          }};
}

}  // namespace tidemark
