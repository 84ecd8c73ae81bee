// GoogLeNet with batch normalisation: Szegedy et al. 2015 (arXiv:1409.4842), as in torchvision,
// whose branch of 5x5 convolutions is 3x3 too. Without the auxiliary classifiers.
//
//   stem -> nine inception blocks, each of four branches side by side -> mean -> classifier
//
// Threads: the session's issuing thread.
#pragma once

#include <memory>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

std::unique_ptr<ImageModel> make_googlenet(const ImageModelOptions& options,
                                           ParameterInit& init);

}  // namespace tidemark
