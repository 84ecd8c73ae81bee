// The interface of all image classifiers. image_models.h makes them by name.
//
// Parameters have torchvision's names and order. Convolution weights are (K, R, S, C / groups)
// here and (K, C / groups, R, S) in torchvision. The first fully connected layer after an image
// of more than one pixel reads it as (H, W, C) here and as (C, H, W) there;
// checkpoint/torchvision.h converts torchvision's files. Every network initialises convolution
// weights as He et al. do (ParameterInit::kaiming_normal_fan_out).
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
  // For images of up to 64 x 64 pixels: in networks with such a variant, the first layer keeps
  // the image size (in ResNets, the pooling is dropped too).
  bool small_images = false;
  bool regularise = true;  // dropout and stochastic depth, in training mode
};

class ImageModel : public Module {
 public:
  // images (N, H, W, channels), or clips (resnet3d.h) -> logits (N, classes). Throws UsageError
  // if shapes do not fit.
  virtual Tensor forward(const Tensor& images) const = 0;
  // Pixels of the image that the first fully connected layer reads.
  virtual int64_t pixels() const { return 1; }
};

}  // namespace tidemark
