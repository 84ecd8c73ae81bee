// AlexNet: Krizhevsky 2014, "One weird trick" (arXiv:1404.5997), as in torchvision. Images of
// at least 63 x 63 pixels.
//
//   five convolutions, three of them followed by max pooling -> mean to 6 x 6 -> three fully
//   connected layers
//
// Threads: the session's issuing thread.
#pragma once

#include <memory>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

std::unique_ptr<ImageModel> make_alexnet(const ImageModelOptions& options, ParameterInit& init);

}  // namespace tidemark
