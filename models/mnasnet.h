// MnasNet-B1, depth multiplier 1.0: Tan et al. 2019 (arXiv:1807.11626), as in torchvision.
//
//   3x3 stem -> depthwise separable -> stacks of inverted residuals -> 1x1 head -> mean ->
//   classifier
//
// Activations are ReLU. Batch normalisation moves its running statistics slowly, by 0.0003.
//
// Threads: the session's issuing thread.
#pragma once

#include <memory>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

std::unique_ptr<ImageModel> make_mnasnet1_0(const ImageModelOptions& options,
                                            ParameterInit& init);

}  // namespace tidemark
