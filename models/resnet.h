// Residual networks: He et al. 2016 (arXiv:1512.03385), with stride on the 3x3 convolution as
// in torchvision, and ResNeXt, Xie et al. 2017 (arXiv:1611.05431).
//
//   stem -> layer1 -> layer2 -> layer3 -> layer4 -> mean over the image -> fc
//
// Parameters have torchvision's names and order of values, except for the layout of convolution
// weights: (K, R, S, C / groups) here, (K, C / groups, R, S) there.
//
// Threads: the session's issuing thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/image_model.h"
#include "models/nn/layers.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

struct ResNetOptions {
  std::array<int64_t, 4> blocks{2, 2, 2, 2};
  bool bottleneck = false;  // 1x1, 3x3, 1x1 instead of 3x3, 3x3
  int64_t groups = 1;       // of the 3x3 convolution; bottleneck only
  int64_t group_width = 64;
  // For small images: a 3x3 convolution of stride 1 without pooling, instead of 7x7 of stride 2
  // and 3x3 max pooling of stride 2.
  bool cifar_stem = false;
  int64_t in_channels = 3;
  int64_t classes = 1000;
  // Initial gamma of the last normalisation of each block. With 0, each block starts as the
  // identity (Goyal et al. 2017).
  float residual_gamma = 1;
};

// "resnet18", "resnet34", "resnet50", "resnet101", "resnext50_32x4d". For other names, throws
// UsageError that lists these.
ResNetOptions resnet_options(const std::string& name);
const std::vector<std::string>& resnet_names();

// Two or three convolutions and a shortcut.
class ResNetBlock : public Module {
 public:
  static constexpr int64_t kExpansion = 4;  // of a bottleneck's width

  // `width` is the paper's: channels of the inner convolutions at groups = 1.
  ResNetBlock(const ResNetOptions& options, int64_t in, int64_t width, int64_t stride,
              ParameterInit& init);
  // x (N, H, W, in) -> (N, H / stride, W / stride, out())
  Tensor forward(const Tensor& x) const;
  int64_t out() const { return out_; }

 private:
  // The projection used where the shape changes, named "downsample" with parts "0" and "1".
  struct Projection : Module {
    Projection(int64_t in, int64_t out, int64_t stride, ParameterInit& init);
    Conv2d conv;
    BatchNorm2d norm;
  };

  int64_t out_;
  int64_t inner_;
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  std::optional<Conv2d> conv3_;
  std::optional<BatchNorm2d> bn3_;
  std::optional<Projection> downsample_;
};

class ResNet : public ImageModel {
 public:
  ResNet(const ResNetOptions& options, ParameterInit& init);
  // images (N, H, W, in_channels) -> logits (N, classes). Throws UsageError if shapes do not
  // fit.
  Tensor forward(const Tensor& images) const override;

 private:
  // "layer1" with blocks "0", "1", ...
  struct Layer : Module {
    Layer(const ResNetOptions& options, int64_t in, int64_t width, int64_t blocks,
          int64_t stride, ParameterInit& init);
    int64_t out() const { return parts.back()->out(); }
    std::vector<std::unique_ptr<ResNetBlock>> parts;
  };

  ResNetOptions options_;
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Layer layer1_;
  Layer layer2_;
  Layer layer3_;
  Layer layer4_;
  Linear fc_;
};

// Makes a network by name, with the CIFAR stem for small images.
std::unique_ptr<ImageModel> make_resnet(const std::string& name,
                                        const ImageModelOptions& options, ParameterInit& init);

}  // namespace tidemark
