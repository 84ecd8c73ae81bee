#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/conv/attrs.h"
#include "ops/conv/kernels.h"
#include "ops/dnnl/primitive.h"

namespace tidemark {
namespace {

using Desc = dnnl::memory::desc;

// In oneDNN's sense, "direct" includes products of copied windows (GEMM). Its Winograd kernels
// do not take channels-last tensors.
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

// Whether to take the implementation with this name: "jit:avx2".
using Wanted = std::function<bool(std::string_view)>;

// The first implementation that is wanted, in oneDNN's order, which begins with its own choice;
// if none is, the last. (`desc` has to live as long as the search.)
template <class OpDesc>
dnnl::primitive_desc find_implementation(const OpDesc& desc, const Wanted& wanted) {
  // A backward description may take a forward one as a hint; convolutions do not need it.
  dnnl::primitive_desc description(&desc.data, &onednn::attributes(), onednn::engine(),
                                   nullptr);
  while (!wanted(description.impl_info_str()) && description.next_impl()) {
  }
  return description;
}

template <size_t n>
dnnl::primitive_desc describe(const OpQuery& query, const Wanted& wanted) {
  const auto& attrs = query.attr<ConvAttrs<n>>();
  const bool bias = query.inputs.size() == 3;
  const Geometry g(attrs);
  return find_implementation(
      dnnl::convolution_forward::desc(
          dnnl::prop_kind::forward_training, kAlgorithm, onednn::nhwc(query.inputs[0]),
          onednn::any_layout(weight_desc(query.inputs[1], attrs.groups)),
          bias ? onednn::vector(query.inputs[2].shape[0]) : Desc(),
          onednn::nhwc(query.outputs[0]), g.stride, g.dilation, g.padding, g.padding),
      wanted);
}

template <size_t n>
dnnl::primitive_desc describe_grad_input(const OpQuery& query, const Wanted& wanted) {
  const auto& attrs = query.attr<ConvGradInputAttrs<n>>().conv;
  const Geometry g(attrs);
  return find_implementation(
      dnnl::convolution_backward_data::desc(
          kAlgorithm, onednn::nhwc(query.outputs[0]),
          onednn::any_layout(weight_desc(query.inputs[1], attrs.groups)),
          onednn::nhwc(query.inputs[0]), g.stride, g.dilation, g.padding, g.padding),
      wanted);
}

template <size_t n>
dnnl::primitive_desc describe_grad_weight(const OpQuery& query, const Wanted& wanted) {
  const auto& attrs = query.attr<ConvGradWeightAttrs<n>>();
  const Geometry g(attrs.conv);
  return find_implementation(
      dnnl::convolution_backward_weights::desc(
          kAlgorithm, onednn::nhwc(query.inputs[0]),
          onednn::any_layout(weight_desc(query.outputs[0], attrs.conv.groups)),
          attrs.bias ? onednn::vector(query.outputs[1].shape[0]) : Desc(),
          onednn::nhwc(query.inputs[1]), g.stride, g.dilation, g.padding, g.padding),
      wanted);
}

// The query's algorithm, which is empty (oneDNN's choice) or one of other_implementations().
Wanted chosen_in(const OpQuery& query) {
  return [name = query.algorithm](std::string_view implementation) {
    return name.empty() || implementation == name;
  };
}

// The names of all but the first, without repetition.
std::vector<std::string> other_implementations(
    const OpQuery& query,
    dnnl::primitive_desc (*describe_pass)(const OpQuery&, const Wanted&)) {
  const UseThreads use(query.threads);
  std::vector<std::string> names;
  describe_pass(query, [&](std::string_view name) {
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (is_new) names.emplace_back(name);
    return false;
  });
  names.erase(names.begin());
  return names;
}

}  // namespace

template <size_t n>
PreparedKernel prepare_conv_cpu(const OpQuery& query) {
  onednn::require_kernels(n == 2 ? "conv2d" : "conv3d", query.inputs[0].dtype);
  const UseThreads use(query.threads);
  const Desc w = weight_desc(query.inputs[1], query.attr<ConvAttrs<n>>().groups);
  const auto description = describe<n>(query, chosen_in(query));
  if (query.inputs.size() == 2) {
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
  return onednn::weighted_kernel(describe_grad_input<n>(query, chosen_in(query)),
                                 {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
                                 weight_desc(query.inputs[1], attrs.groups), use);
}

template <size_t n>
PreparedKernel prepare_conv_grad_weight_cpu(const OpQuery& query) {
  onednn::require_kernels(n == 2 ? "conv2d_grad_weight" : "conv3d_grad_weight",
                          query.inputs[0].dtype);
  const UseThreads use(query.threads);
  const auto& attrs = query.attr<ConvGradWeightAttrs<n>>();
  const bool bias = attrs.bias != 0;
  const Desc w = weight_desc(query.outputs[0], attrs.conv.groups);
  const auto description = describe_grad_weight<n>(query, chosen_in(query));
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

template <size_t n>
std::vector<std::string> conv_algorithms_cpu(const OpQuery& query) {
  return other_implementations(query, describe<n>);
}
template <size_t n>
std::vector<std::string> conv_grad_input_algorithms_cpu(const OpQuery& query) {
  return other_implementations(query, describe_grad_input<n>);
}
template <size_t n>
std::vector<std::string> conv_grad_weight_algorithms_cpu(const OpQuery& query) {
  return other_implementations(query, describe_grad_weight<n>);
}

template PreparedKernel prepare_conv_cpu<2>(const OpQuery&);
template PreparedKernel prepare_conv_cpu<3>(const OpQuery&);
template PreparedKernel prepare_conv_grad_input_cpu<2>(const OpQuery&);
template PreparedKernel prepare_conv_grad_input_cpu<3>(const OpQuery&);
template PreparedKernel prepare_conv_grad_weight_cpu<2>(const OpQuery&);
template PreparedKernel prepare_conv_grad_weight_cpu<3>(const OpQuery&);
template std::vector<std::string> conv_algorithms_cpu<2>(const OpQuery&);
template std::vector<std::string> conv_algorithms_cpu<3>(const OpQuery&);
template std::vector<std::string> conv_grad_input_algorithms_cpu<2>(const OpQuery&);
template std::vector<std::string> conv_grad_input_algorithms_cpu<3>(const OpQuery&);
template std::vector<std::string> conv_grad_weight_algorithms_cpu<2>(const OpQuery&);
template std::vector<std::string> conv_grad_weight_algorithms_cpu<3>(const OpQuery&);

}  // namespace tidemark
