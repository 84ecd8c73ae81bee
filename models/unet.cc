#include "models/unet.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/nn/layers.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"
#include "ops/pool/max_pool2d.h"
#include "ops/pool/upsample.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// n: spatial dimensions.
template <size_t n>
std::array<int64_t, n> all(int64_t value) {
  std::array<int64_t, n> values;
  values.fill(value);
  return values;
}

template <size_t n>
Shape weight_shape(int64_t first, int64_t kernel, int64_t last) {
  Shape shape{first};
  for (size_t i = 0; i < n; ++i) shape.push_back(kernel);
  shape.push_back(last);
  return shape;
}

template <size_t n>
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t padding) {
  const ConvAttrs<n> attrs{.padding = all<n>(padding)};
  if constexpr (n == 2) {
    return conv2d(x, w, bias, attrs);
  } else {
    return conv3d(x, w, bias, attrs);
  }
}

template <size_t n>
Tensor half_size(const Tensor& x) {
  if constexpr (n == 2) {
    return max_pool2d(x, {});
  } else {
    return max_pool3d(x, {});
  }
}

// x without what `to` does not have, evenly on both sides of each spatial dimension.
Tensor crop(Tensor x, const Shape& to) {
  for (size_t d = 1; d + 1 < to.rank(); ++d) {
    const int64_t more = x.extent(d) - to[d];
    if (more > 0) x = narrow(x, static_cast<int64_t>(d), more / 2, to[d]);
  }
  return x;
}

template <size_t n>
class ConvNormRelu : public Module {
 public:
  ConvNormRelu(int64_t in, int64_t out, bool padded, ParameterInit& init)
      : padding_(padded ? 1 : 0),
        weight_(init.kaiming_normal_fan_out(weight_shape<n>(out, 3, in))),
        norm_(out, init) {
    register_parameter("conv.weight", weight_);
    register_child("norm", norm_);
  }
  Tensor forward(const Tensor& x) const {
    const Scope scope(*this);
    return norm_.forward_relu(convolve<n>(working(x), working(weight_), {}, padding_));
  }

 private:
  int64_t padding_;
  Tensor weight_;
  BatchNorm2d norm_;
};

template <size_t n>
class DoubleConv : public Module {
 public:
  DoubleConv(int64_t in, int64_t inner, int64_t out, bool padded, ParameterInit& init)
      : first_(in, inner, padded, init), second_(inner, out, padded, init) {
    register_child("0", first_);
    register_child("1", second_);
  }
  Tensor forward(const Tensor& x) const { return second_.forward(first_.forward(x)); }

 private:
  ConvNormRelu<n> first_, second_;
};

// Twice the size, joined with what the way down kept.
template <size_t n>
class Up : public Module {
 public:
  // in (N, H, W, in), kept (N, 2 H, 2 W, out) -> (N, 2 H, 2 W, out)
  Up(int64_t in, int64_t enlarged, int64_t out, const UNetOptions& options, ParameterInit& init)
      : upsample_(options.upsample),
        weight_(init.kaiming_normal_fan_out(upsample_ ? weight_shape<n>(enlarged, 3, in)
                                                      : weight_shape<n>(in, 2, enlarged))),
        bias_(init.constant(Shape{enlarged}, 0)),
        convs_(enlarged + out, out, out, options.padded, init) {
    register_parameter("weight", weight_);
    register_parameter("bias", bias_);
    register_child("convs", convs_);
  }
  Tensor forward(const Tensor& x, const Tensor& kept) const {
    const Scope scope(*this);
    const Tensor large = enlarge(working(x));
    return convs_.forward(concat({large, crop(kept, large.shape())}, n + 1));
  }

 private:
  Tensor enlarge(const Tensor& x) const {
    const Tensor w = working(weight_);
    if (upsample_) {
      return convolve<n>(upsample(x, Shape(all<n>(2)), *upsample_), w, bias_, 1);
    }
    const ConvTransposeAttrs<n> attrs{{.stride = all<n>(2)}};
    if constexpr (n == 2) {
      return conv_transpose2d(x, w, working(bias_), attrs);
    } else {
      return conv_transpose3d(x, w, working(bias_), attrs);
    }
  }

  std::optional<Interpolation> upsample_;
  Tensor weight_, bias_;
  DoubleConv<n> convs_;
};

// Scores of the classes, each pixel by itself.
template <size_t n>
class Head : public Module {
 public:
  Head(int64_t in, int64_t classes, ParameterInit& init)
      : weight_(init.kaiming_normal_fan_out(weight_shape<n>(classes, 1, in))),
        bias_(init.constant(Shape{classes}, 0)) {
    register_parameter("weight", weight_);
    register_parameter("bias", bias_);
  }
  Tensor forward(const Tensor& x) const {
    const Scope scope(*this);
    return convolve<n>(working(x), working(weight_), bias_, 0);
  }

 private:
  Tensor weight_, bias_;
};

template <size_t n>
class UNet : public SegmentationModel {
 public:
  UNet(const UNetOptions& options, ParameterInit& init) {
    // The channels of a pair of convolutions from `in` to `out` in between.
    const auto inner = [&options](int64_t out) { return options.widen_first ? out : out / 2; };
    const auto double_conv = [&](int64_t in, int64_t out) {
      return std::make_unique<DoubleConv<n>>(in, inner(out), out, options.padded, init);
    };
    int64_t channels = options.width;
    enter_ = double_conv(options.channels, channels);
    register_child("enter", *enter_);
    for (int64_t i = 0; i < options.depth; ++i) {
      // Çiçek et al. keep the channels in the first of the pair and double them in the second.
      down_.push_back(double_conv(channels, 2 * channels));
      register_child("down." + std::to_string(i), *down_.back());
      channels *= 2;
    }
    for (int64_t i = 0; i < options.depth; ++i) {
      const int64_t out = channels / 2;
      // Ronneberger et al. halve the channels as the size grows; Çiçek et al. keep them.
      up_.push_back(std::make_unique<Up<n>>(channels, options.widen_first ? out : channels, out,
                                            options, init));
      register_child("up." + std::to_string(i), *up_.back());
      channels = out;
    }
    head_ = std::make_unique<Head<n>>(channels, options.classes, init);
    register_child("head", *head_);
  }

  Tensor forward(const Tensor& images) const override {
    if (images.shape().rank() != n + 2) {
      throw UsageError(std::string(n == 2 ? "[unet] images must be (N, H, W, channels), not "
                                          : "[unet3d] volumes must be (N, D, H, W, channels), "
                                            "not ") +
                       images.shape().to_string());
    }
    std::vector<Tensor> kept;
    Tensor x = enter_->forward(images);
    for (const auto& down : down_) {
      kept.push_back(x);
      x = down->forward(half_size<n>(even(x)));
    }
    for (const auto& up : up_) {
      x = up->forward(x, kept.back());
      kept.pop_back();
    }
    return head_->forward(x);
  }

 private:
  static Tensor even(const Tensor& x) {
    for (size_t d = 1; d <= n; ++d) {
      if (x.extent(d) % 2 != 0) {
        throw UsageError("[unet] cannot halve " + x.shape().to_string() +
                         ": each level's height and width must be even");
      }
    }
    return x;
  }

  std::unique_ptr<DoubleConv<n>> enter_;
  std::vector<std::unique_ptr<DoubleConv<n>>> down_;
  std::vector<std::unique_ptr<Up<n>>> up_;
  std::unique_ptr<Head<n>> head_;
};

}  // namespace

std::unique_ptr<SegmentationModel> make_unet(const UNetOptions& options, ParameterInit& init) {
  return std::make_unique<UNet<2>>(options, init);
}
std::unique_ptr<SegmentationModel> make_unet3d(const UNetOptions& options,
                                               ParameterInit& init) {
  return std::make_unique<UNet<3>>(options, init);
}

UNetOptions unet_as_published() { return {.padded = false}; }
UNetOptions unet3d_as_published() {
  return {.channels = 3, .classes = 3, .depth = 3, .widen_first = false, .padded = false};
}

}  // namespace tidemark
