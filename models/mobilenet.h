// MobileNetV2: Sandler et al. 2018 (arXiv:1801.04381), as in torchvision.
//
//   3x3 stem -> inverted residuals -> 1x1 head -> mean -> classifier
//
// An inverted residual is 1x1 to six times the channels, depthwise 3x3, 1x1 back without an
// activation; where the shape stays, the input is added. Activations are ReLU6.
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
