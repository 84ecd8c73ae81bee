#include "models/efficientnet.h"

#include <algorithm>

#include "models/features_classifier.h"
#include "models/nn/conv_blocks.h"
#include "ops/elementwise/arithmetic.h"

namespace tidemark {
namespace {

struct Stage {
  int64_t expand;  // channels inside, as a multiple of the input's
  int64_t kernel;
  int64_t stride;  // of the first block
  int64_t out;
  int64_t blocks;
};
constexpr Stage kStages[] = {
    {1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},  {6, 3, 2, 80, 3},
    {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1},
};
constexpr int64_t kStem = 32, kHead = 1280;
constexpr double kDropout = 0.2, kStochasticDepth = 0.2;

ConvNormOptions conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups,
                     Activation activation) {
  return {.conv = {.in = in,
                   .out = out,
                   .kernel = kernel,
                   .stride = stride,
                   .padding = kernel / 2,
                   .groups = groups},
          .activation = activation};
}

class MBConv : public Module {
 public:
  MBConv(const Stage& stage, int64_t in, int64_t stride, double drop, ParameterInit& init)
      : drop_(drop), residual_(stride == 1 && in == stage.out) {
    const int64_t inner = in * stage.expand;
    if (stage.expand != 1) {
      block_.add<ConvNorm>(conv(in, inner, 1, 1, 1, Activation::kSiLU), init);
    }
    block_.add<ConvNorm>(conv(inner, inner, stage.kernel, stride, inner, Activation::kSiLU),
                         init);
    block_.add<SqueezeExcitation>(inner, std::max<int64_t>(1, in / 4), init);
    block_.add<ConvNorm>(conv(inner, stage.out, 1, 1, 1, Activation::kNone), init);
    register_child("block", block_);
  }
  Tensor forward(const Tensor& x) const {
    const Scope scope(*this);
    const Tensor y = block_.forward(x);
    return residual_ ? add(stochastic_depth(y, training() ? drop_ : 0), x) : y;
  }

 private:
  double drop_;
  bool residual_;
  Sequential block_;
};

class EfficientNet : public FeaturesClassifier {
 public:
  EfficientNet(const ImageModelOptions& options, ParameterInit& init) {
    features_.add<ConvNorm>(
        conv(options.channels, kStem, 3, options.small_images ? 1 : 2, 1, Activation::kSiLU),
        init);
    int64_t in = kStem, done = 0, all = 0;
    for (const Stage& stage : kStages) all += stage.blocks;
    for (const Stage& stage : kStages) {
      auto& blocks = features_.add<Sequential>();
      for (int64_t i = 0; i < stage.blocks; ++i) {
        const double depth = static_cast<double>(done++) / static_cast<double>(all);
        blocks.add<MBConv>(stage, in, i == 0 ? stage.stride : 1,
                           options.regularise ? kStochasticDepth * depth : 0, init);
        in = stage.out;
      }
    }
    features_.add<ConvNorm>(conv(in, kHead, 1, 1, 1, Activation::kSiLU), init);
    classifier_.add<Dropout>(options.regularise ? kDropout : 0);
    classifier_.add<Linear>(kHead, options.classes, init);
  }
};

}  // namespace

std::unique_ptr<ImageModel> make_efficientnet_b0(const ImageModelOptions& options,
                                                 ParameterInit& init) {
  return std::make_unique<EfficientNet>(options, init);
}

}  // namespace tidemark
