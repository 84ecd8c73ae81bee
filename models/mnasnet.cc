#include "models/mnasnet.h"

#include "models/features_classifier.h"
#include "models/nn/conv_blocks.h"
#include "ops/elementwise/arithmetic.h"

namespace tidemark {
namespace {

struct Stage {
  int64_t out;
  int64_t kernel;
  int64_t stride;  // of the first block
  int64_t expand;  // channels inside, as a multiple of the input's
  int64_t blocks;
};
constexpr Stage kStages[] = {{24, 3, 2, 3, 3}, {40, 5, 2, 3, 3},  {80, 5, 2, 6, 3},
                             {96, 3, 1, 6, 2}, {192, 5, 2, 6, 4}, {320, 3, 1, 6, 1}};
constexpr int64_t kStem = 32, kFirst = 16, kHead = 1280;
constexpr double kDropout = 0.2;
constexpr BatchNormOptions kNorm{.momentum = 0.0003};

// Adds convolution, normalisation and, if wanted, ReLU as separate modules.
void add_conv(Sequential& into, const Conv2dOptions& options, bool relu, ParameterInit& init) {
  into.add<Conv2d>(options, init);
  if (relu) {
    into.add<NormRelu>(options.out, init, kNorm);
    into.skip();
  } else {
    into.add<BatchNorm2d>(options.out, init, kNorm);
  }
}

// (out, kernel, stride) depthwise
Conv2dOptions depthwise(int64_t channels, int64_t kernel, int64_t stride) {
  return {.in = channels,
          .out = channels,
          .kernel = kernel,
          .stride = stride,
          .padding = kernel / 2,
          .groups = channels};
}

class InvertedResidual : public Module {
 public:
  InvertedResidual(const Stage& stage, int64_t in, int64_t stride, ParameterInit& init)
      : residual_(stride == 1 && in == stage.out) {
    const int64_t inner = in * stage.expand;
    add_conv(layers_, {.in = in, .out = inner}, true, init);
    add_conv(layers_, depthwise(inner, stage.kernel, stride), true, init);
    add_conv(layers_, {.in = inner, .out = stage.out}, false, init);
    register_child("layers", layers_);
  }
  Tensor forward(const Tensor& x) const {
    const Scope scope(*this);
    const Tensor y = layers_.forward(x);
    return residual_ ? add(y, x) : y;
  }

 private:
  bool residual_;
  Sequential layers_;
};

class MnasNet : public FeaturesClassifier {
 public:
  MnasNet(const ImageModelOptions& options, ParameterInit& init)
      : FeaturesClassifier(1, "layers") {
    add_conv(features_,
             {.in = options.channels,
              .out = kStem,
              .kernel = 3,
              .stride = options.small_images ? 1 : 2,
              .padding = 1},
             true, init);
    add_conv(features_, depthwise(kStem, 3, 1), true, init);
    add_conv(features_, {.in = kStem, .out = kFirst}, false, init);
    int64_t in = kFirst;
    for (const Stage& stage : kStages) {
      auto& blocks = features_.add<Sequential>();
      for (int64_t i = 0; i < stage.blocks; ++i) {
        blocks.add<InvertedResidual>(stage, in, i == 0 ? stage.stride : 1, init);
        in = stage.out;
      }
    }
    add_conv(features_, {.in = in, .out = kHead}, true, init);
    classifier_.add<Dropout>(options.regularise ? kDropout : 0);
    classifier_.add<Linear>(kHead, options.classes, init);
  }
};

}  // namespace

std::unique_ptr<ImageModel> make_mnasnet1_0(const ImageModelOptions& options,
                                            ParameterInit& init) {
  return std::make_unique<MnasNet>(options, init);
}

}  // namespace tidemark
