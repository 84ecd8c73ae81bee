#include "models/vision_transformer.h"

#include <string>

#include "models/nn/attention.h"
#include "models/nn/conv_blocks.h"
#include "models/nn/dense.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/gelu.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr double kEpsilon = 1e-6;

class Layer : public Module {
 public:
  Layer(const VisionTransformerOptions& vit, ParameterInit& init)
      : ln1_(vit.width, init, kEpsilon),
        attention_({.width = vit.width,
                    .heads = vit.heads,
                    .fused = true,
                    .output = "out_proj",
                    .fused_name = "in_proj"},
                   init),
        ln2_(vit.width, init, kEpsilon) {
    mlp_.add<Dense>(DenseOptions{.in = vit.width, .out = vit.inner}, init);
    mlp_.apply([](const Tensor& x) { return gelu(x); });
    mlp_.skip();  // dropout, which is 0
    mlp_.add<Dense>(DenseOptions{.in = vit.inner, .out = vit.width}, init);
    register_child("ln_1", ln1_);
    register_child("self_attention", attention_);
    register_child("ln_2", ln2_);
    register_child("mlp", mlp_);
  }
  // x (N, T, width) -> the same
  Tensor forward(const Tensor& x) const {
    const Scope scope(*this);
    const Tensor seen = add(attention_.forward(ln1_.forward(x)), x);
    return add(seen, mlp_.forward(ln2_.forward(seen)));
  }

 private:
  LayerNorm ln1_;
  MultiHeadAttention attention_;
  LayerNorm ln2_;
  Sequential mlp_;
};

class Encoder : public Module {
 public:
  Encoder(const VisionTransformerOptions& vit, int64_t tokens, ParameterInit& init)
      : positions_(init.normal(Shape{1, tokens, vit.width}, 0.02)) {
    register_parameter("pos_embedding", positions_);
    for (int64_t i = 0; i < vit.layers; ++i) {
      layers_.push_back(std::make_unique<Layer>(vit, init));
      register_child("layers.encoder_layer_" + std::to_string(i), *layers_.back());
    }
    ln_ = std::make_unique<LayerNorm>(vit.width, init, kEpsilon);
    register_child("ln", *ln_);
  }
  Tensor forward(const Tensor& tokens) const {
    const Scope scope(*this);
    Tensor x = add(tokens, working(positions_));
    for (const auto& layer : layers_) x = layer->forward(x);
    return ln_->forward(x);
  }
  int64_t tokens() const { return positions_.extent(1); }

 private:
  Tensor positions_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::unique_ptr<LayerNorm> ln_;
};

int64_t patches(const VisionTransformerOptions& vit, int64_t image) {
  if (image < vit.patch || image % vit.patch != 0) {
    throw UsageError("images of " + std::to_string(image) +
                     " pixels cannot be cut into patches of " + std::to_string(vit.patch));
  }
  return (image / vit.patch) * (image / vit.patch);
}

class VisionTransformer : public ImageModel {
 public:
  VisionTransformer(const VisionTransformerOptions& vit, const ImageModelOptions& options,
                    ParameterInit& init)
      : vit_(vit),
        class_token_(init.constant(Shape{1, 1, vit.width}, 0)),
        projection_({.in = options.channels,
                     .out = vit.width,
                     .kernel = vit.patch,
                     .stride = vit.patch,
                     .bias = true},
                    init),
        encoder_(vit, patches(vit, options.image) + 1, init),
        head_({.in = vit.width, .out = options.classes}, init) {
    register_parameter("class_token", class_token_);
    register_child("conv_proj", projection_);
    register_child("encoder", encoder_);
    register_child("heads.head", head_);
  }
  Tensor forward(const Tensor& images) const override {
    const int64_t n = images.extent(0);
    const Tensor patches = reshape(projection_.forward(images), {n, -1, vit_.width});
    if (patches.extent(1) + 1 != encoder_.tokens()) {
      throw UsageError("[vit] " + std::to_string(patches.extent(1)) +
                       " patches, but positions for " + std::to_string(encoder_.tokens() - 1));
    }
    const Tensor x = encoder_.forward(
        concat({expand(working(class_token_), {n, 1, vit_.width}), patches}, 1));
    return head_.forward(squeeze(narrow(x, 1, 0, 1), 1));
  }

 private:
  VisionTransformerOptions vit_;
  Tensor class_token_;
  Conv2d projection_;
  Encoder encoder_;
  Dense head_;
};

}  // namespace

std::unique_ptr<ImageModel> make_vision_transformer(const VisionTransformerOptions& vit,
                                                    const ImageModelOptions& options,
                                                    ParameterInit& init) {
  return std::make_unique<VisionTransformer>(vit, options, init);
}

std::unique_ptr<ImageModel> make_vit_b_16(const ImageModelOptions& options,
                                          ParameterInit& init) {
  return make_vision_transformer({}, options, init);
}

}  // namespace tidemark
