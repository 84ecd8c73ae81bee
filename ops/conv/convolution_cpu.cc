#include <memory>

#include "ops/conv/attrs.h"
#include "ops/conv/kernels.h"
#include "ops/dnnl/primitive.h"

namespace tidemark {
namespace {

using Desc = dnnl::memory::desc;

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

// The weight in its stored layout: (K, R, S, C / groups) or (K, T, R, S, C / groups).
Desc weight_desc(const TensorMeta& meta, int64_t groups) {
  using Tag = dnnl::memory::format_tag;
  const Shape& w = meta.shape;
  const auto type = onednn::data_type(meta.dtype);
  const bool clips = w.rank() == 5;
  dnnl::memory::dims dims{w[0] / groups, w.back()};
  dims.insert(dims.end(), w.begin() + 1, w.end() - 1);
  if (groups == 1) return {dims, type, clips ? Tag::odhwi : Tag::ohwi};
  dims.insert(dims.begin(), groups);
  return {dims, type, clips ? Tag::godhwi : Tag::gohwi};
}

struct Geometry {
  template <size_t n>
  explicit Geometry(const ConvAttrs<n>& attrs)
      : stride(attrs.stride.begin(), attrs.stride.end()),
        padding(attrs.padding.begin(), attrs.padding.end()),
        dilation(attrs.dilation.begin(), attrs.dilation.end()) {
    for (int64_t& each : dilation) --each;
  }
  dnnl::memory::dims stride;
  dnnl::memory::dims padding;
  dnnl::memory::dims dilation;  // oneDNN counts the gaps
};

dnnl::convolution_forward::primitive_desc describe_forward(const Desc& x, const Desc& w,
                                                           const Desc& bias, const Desc& y,
                                                           const Geometry& g) {
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_training, kAlgorithm, x,
                                             w, bias, y, g.stride, g.dilation, g.padding,
                                             g.padding);
  return {desc, onednn::attributes(), onednn::engine()};
}

// Backward descriptions may take a forward one as a hint; convolutions do not need it.
template <class OpDesc>
dnnl::primitive_desc describe_backward(const OpDesc& desc) {
  return dnnl::primitive_desc(&desc.data, &onednn::attributes(), onednn::engine(), nullptr);
}

}  // namespace

template <size_t n>
PreparedKernel prepare_conv_cpu(const OpQuery& query) {
  onednn::require_kernels(n == 2 ? "conv2d" : "conv3d", query.inputs[0].dtype);
  const UseThreads use(query.threads);
  const auto& attrs = query.attr<ConvAttrs<n>>();
  const bool bias = query.inputs.size() == 3;
  const Desc w = weight_desc(query.inputs[1], attrs.groups);
  const auto description =
      describe_forward(onednn::nhwc(query.inputs[0]), onednn::any_layout(w),
                       bias ? onednn::vector(query.inputs[2].shape[0]) : Desc(),
                       onednn::nhwc(query.outputs[0]), Geometry(attrs));
  if (!bias) {
    return onednn::weighted_kernel(description, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                   w, use);
  }
  return onednn::weighted_kernel(
      description, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS}, w, use);
}

template <size_t n>
PreparedKernel prepare_conv_grad_input_cpu(const OpQuery& query) {
  onednn::require_kernels(n == 2 ? "conv2d_grad_input" : "conv3d_grad_input",
                          query.inputs[0].dtype);
  const UseThreads use(query.threads);
  const auto& attrs = query.attr<ConvGradInputAttrs<n>>().conv;
  const Desc w = weight_desc(query.inputs[1], attrs.groups);
  const Geometry g(attrs);
  const auto description = describe_backward(dnnl::convolution_backward_data::desc(
      kAlgorithm, onednn::nhwc(query.outputs[0]), onednn::any_layout(w),
      onednn::nhwc(query.inputs[0]), g.stride, g.dilation, g.padding, g.padding));
  return onednn::weighted_kernel(
      description, {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC}, w, use);
}

template <size_t n>
PreparedKernel prepare_conv_grad_weight_cpu(const OpQuery& query) {
  onednn::require_kernels(n == 2 ? "conv2d_grad_weight" : "conv3d_grad_weight",
                          query.inputs[0].dtype);
  const UseThreads use(query.threads);
  const auto& attrs = query.attr<ConvGradWeightAttrs<n>>();
  const bool bias = attrs.bias != 0;
  const Desc w = weight_desc(query.outputs[0], attrs.conv.groups);
  const Geometry g(attrs.conv);
  const Desc gbias = bias ? onednn::vector(query.outputs[1].shape[0]) : Desc();
  const auto description = describe_backward(dnnl::convolution_backward_weights::desc(
      kAlgorithm, onednn::nhwc(query.inputs[0]), onednn::any_layout(w), gbias,
      onednn::nhwc(query.inputs[1]), g.stride, g.dilation, g.padding, g.padding));
  const auto make = [&](std::initializer_list<int> arguments) {
    return std::make_shared<onednn::WeightedPrimitive>(description, arguments, w,
                                                       DNNL_ARG_DIFF_WEIGHTS, -1, use);
  };
  const auto kernel =
      bias ? make({DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS})
           : make({DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS});
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

template PreparedKernel prepare_conv_cpu<2>(const OpQuery&);
template PreparedKernel prepare_conv_cpu<3>(const OpQuery&);
template PreparedKernel prepare_conv_grad_input_cpu<2>(const OpQuery&);
template PreparedKernel prepare_conv_grad_input_cpu<3>(const OpQuery&);
template PreparedKernel prepare_conv_grad_weight_cpu<2>(const OpQuery&);
template PreparedKernel prepare_conv_grad_weight_cpu<3>(const OpQuery&);

}  // namespace tidemark
