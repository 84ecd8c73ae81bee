// ResNet-18 for clips (Tran et al. 2018, arXiv:1711.11248: R3D), as torchvision's r3d_18:
// convolutions over time, height and width.
//
//   clip (N, D, H, W, channels)
//   -> stem: 3x7x7/(1, 2, 2), BN, ReLU                        (N, D, H/2, W/2, 64)
//   -> layer1, layer2, layer3, layer4 of 2 blocks, the last three halving all three extents
//   -> mean over D, H, W -> fc -> (N, classes)
//
//   block   relu(BN conv3x3x3(relu(BN conv3x3x3/s x)) + shortcut),
//           shortcut = BN conv1x1x1/s x where the shape changes, else x
//
// Names follow torchvision: "layer1.0.conv1.0.weight" belongs to a convolution,
// "layer1.0.conv1.1.weight" to its batch normalisation. Weights are (K, T, R, S, C) here and
// (K, C, T, R, S) in torchvision.
//
// Threads: the session's issuing thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/image_model.h"
#include "models/nn/conv3d.h"
#include "models/nn/layers.h"

namespace tidemark {

class ResNet3d : public ImageModel {
 public:
  // Uses only the channels and the classes of `options`; Kinetics has 400 classes.
  ResNet3d(const ImageModelOptions& options, ParameterInit& init);

  // clips (N, D, H, W, channels) -> logits (N, classes). Throws UsageError if shapes do not
  // fit.
  Tensor forward(const Tensor& clips) const override;

 private:
  class ConvNorm : public Module {
   public:
    ConvNorm(const Conv3dOptions& options, ParameterInit& init);
    Tensor forward(const Tensor& x) const { return norm_.forward(conv_.forward(x)); }
    // relu(forward(x) [+ residual])
    Tensor forward_relu(const Tensor& x, const Tensor& residual = {}) const {
      return norm_.forward_relu(conv_.forward(x), residual);
    }

   private:
    Conv3d conv_;
    BatchNorm2d norm_;
  };

  class Block : public Module {
   public:
    Block(int64_t in, int64_t out, int64_t stride, ParameterInit& init);
    Tensor forward(const Tensor& x) const;

   private:
    ConvNorm conv1_, conv2_;
    std::optional<ConvNorm> downsample_;
  };

  ConvNorm stem_;
  std::vector<std::unique_ptr<Block>> blocks_;
  Linear fc_;
};

std::unique_ptr<ImageModel> make_r3d_18(const ImageModelOptions& options, ParameterInit& init);

}  // namespace tidemark
