// EfficientNet-B0: Tan and Le 2019 (arXiv:1905.11946), as in torchvision.
//
//   3x3 stem -> inverted bottlenecks with squeeze and excitation -> 1x1 head -> mean ->
//   classifier
//
// An inverted bottleneck expands the channels by 1x1, applies a depthwise convolution and a
// gate for each channel, and reduces the channels by 1x1. If the shape stays the same, the
// input is added; in training, the block's own path is then skipped for some images (more often
// in deeper blocks). Activations are SiLU.
//
// Threads: the session's issuing thread.
#pragma once

#include <memory>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

std::unique_ptr<ImageModel> make_efficientnet_b0(const ImageModelOptions& options,
                                                 ParameterInit& init);

}  // namespace tidemark
