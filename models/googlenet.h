// GoogLeNet with batch normalisation: Szegedy et al. 2015 (arXiv:1409.4842), as in torchvision,
// where the 5x5 branch uses 3x3 convolutions too. No auxiliary classifiers.
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
