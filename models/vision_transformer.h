// Vision transformer ViT-B/16: Dosovitskiy et al. 2021 (arXiv:2010.11929), as in torchvision.
//
//   patches of 16 x 16 -> 768 values each, a class token before them, positions added -> 12
//   layers of attention and a network for each token -> the class token -> classifier
//
// torchvision's "self_attention" in_proj_weight (3 * 768, 768) is in_proj.weight (768, 3 * 768)
// here, and out_proj.weight is (in, out). The image's height and width must be multiples of 16.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

struct VisionTransformerOptions {
  int64_t patch = 16;
  int64_t width = 768;
  int64_t inner = 3072;  // width between a layer's two dense layers
  int64_t heads = 12;
  int64_t layers = 12;
};

// Throws UsageError if the patches do not tile the image.
std::unique_ptr<ImageModel> make_vision_transformer(const VisionTransformerOptions& vit,
                                                    const ImageModelOptions& options,
                                                    ParameterInit& init);
std::unique_ptr<ImageModel> make_vit_b_16(const ImageModelOptions& options,
                                          ParameterInit& init);

}  // namespace tidemark
