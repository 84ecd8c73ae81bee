// MobileNetV2: Sandler et al. 2018 (arXiv:1801.04381), as in torchvision.
//
//   3x3 stem -> inverted residuals -> 1x1 head -> mean -> classifier
//
// An inverted residual expands the channels sixfold by 1x1, applies a depthwise 3x3
// convolution, and reduces the channels by 1x1 without an activation. If the shape stays the
// same, the input is added. Activations are ReLU6.
//
// Threads: the session's issuing thread.
#pragma once

#include <memory>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

std::unique_ptr<ImageModel> make_mobilenet_v2(const ImageModelOptions& options,
                                              ParameterInit& init);

}  // namespace tidemark
