#include "models/mobilenet.h"

#include "models/features_classifier.h"
#include "models/nn/conv_blocks.h"
#include "models/nn/dense.h"
#include "ops/elementwise/arithmetic.h"

namespace tidemark {
namespace {

struct Stage {
  int64_t expand;  // channels inside, as a multiple of the input's
  int64_t out;
  int64_t blocks;
  int64_t stride;  // of the first block
};
constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
constexpr int64_t kStem = 32, kHead = 1280;
constexpr double kDropout = 0.2;

ConvNormOptions conv(const Conv2dOptions& options) {
  return {.conv = options, .activation = Activation::kReLU6};
}

class InvertedResidual : public Module {
 public:
  InvertedResidual(int64_t in, int64_t out, int64_t expand, int64_t stride, ParameterInit& init)
      : residual_(stride == 1 && in == out) {
    const int64_t inner = in * expand;
    if (expand != 1) conv_.add<ConvNorm>(conv({.in = in, .out = inner}), init);
    conv_.add<ConvNorm>(conv({.in = inner,
                              .out = inner,
                              .kernel = 3,
                              .stride = stride,
                              .padding = 1,
                              .groups = inner}),
                        init);
    conv_.add<Conv2d>(Conv2dOptions{.in = inner, .out = out}, init);
    conv_.add<BatchNorm2d>(out, init);
    register_child("conv", conv_);
  }
  Tensor forward(const Tensor& x) const {
    const Scope scope(*this);
    const Tensor y = conv_.forward(x);
    return residual_ ? add(x, y) : y;
  }

 private:
  bool residual_;
  Sequential conv_;
};

class MobileNetV2 : public FeaturesClassifier {
 public:
  MobileNetV2(const ImageModelOptions& options, ParameterInit& init) {
    features_.add<ConvNorm>(conv({.in = options.channels,
                                  .out = kStem,
                                  .kernel = 3,
                                  .stride = options.small_images ? 1 : 2,
                                  .padding = 1}),
                            init);
    int64_t in = kStem;
    for (const Stage& stage : kStages) {
      for (int64_t i = 0; i < stage.blocks; ++i) {
        features_.add<InvertedResidual>(in, stage.out, stage.expand, i == 0 ? stage.stride : 1,
                                        init);
        in = stage.out;
      }
    }
    features_.add<ConvNorm>(conv({.in = in, .out = kHead}), init);
    classifier_.add<Dropout>(options.regularise ? kDropout : 0);
    classifier_.add<Dense>(DenseOptions{.in = kHead, .out = options.classes, .deviation = 0.01},
                           init);
  }
};

}  // namespace

std::unique_ptr<ImageModel> make_mobilenet_v2(const ImageModelOptions& options,
                                              ParameterInit& init) {
  return std::make_unique<MobileNetV2>(options, init);
}

}  // namespace tidemark
