// What networks that classify images have in common. image_models.h makes them by name.
//
// Parameters have torchvision's names and order. Convolution weights are (K, R, S, C / groups)
// here and (K, C / groups, R, S) there; the first fully connected layer behind an image of more
// than one pixel reads it in the order (H, W, C) here and (C, H, W) there
// (checkpoint/torchvision.h reads and writes its files). First weights of
// convolutions are He et al.'s (ParameterInit::kaiming_normal_fan_out) in every network.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>

#include "models/nn/module.h"

namespace tidemark {

struct ImageModelOptions {
  int64_t image = 224;  // height and width; only transformers have parameters that depend on it
  int64_t channels = 3;
  int64_t classes = 1000;
  // For images of up to 64 x 64 pixels: the first layer keeps their size (ResNets: it does not
  // pool either), where a network has a variant for that.
  bool small_images = false;
  bool regularise = true;  // dropout and stochastic depth, in training mode
};

class ImageModel : public Module {
 public:
  // images (N, H, W, channels), or clips (resnet3d.h) -> logits (N, classes). Throws UsageError
  // if shapes do not fit.
  virtual Tensor forward(const Tensor& images) const = 0;
  // Of the image that the first fully connected layer reads.
  virtual int64_t pixels() const { return 1; }
};

}  // namespace tidemark
