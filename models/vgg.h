// VGG with 11 and 16 layers, without batch normalisation: Simonyan and Zisserman 2015
// (arXiv:1409.1556), as in torchvision. Images of at least 32 x 32 pixels.
//
//   3x3 convolutions in five groups, each followed by max pooling -> mean to 7 x 7 -> three
//   fully connected layers
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

// `hidden`: width of the two fully connected layers before the last.
inline constexpr int64_t kVggHidden = 4096;
std::unique_ptr<ImageModel> make_vgg(int layers, int64_t hidden,
                                     const ImageModelOptions& options, ParameterInit& init);
std::unique_ptr<ImageModel> make_vgg11(const ImageModelOptions& options, ParameterInit& init);
std::unique_ptr<ImageModel> make_vgg16(const ImageModelOptions& options, ParameterInit& init);

}  // namespace tidemark
