// EfficientNet-B0: Tan and Le 2019 (arXiv:1905.11946), as in torchvision.
//
//   3x3 stem -> inverted bottlenecks with squeeze and excitation -> 1x1 head -> mean ->
//   classifier
//
// An inverted bottleneck is 1x1 to more channels, depthwise, a gate for each channel, 1x1 back;
// where the shape stays, the input is added, and in training the rest is left out for some
// images (the deeper, the more). Activations are SiLU.
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
