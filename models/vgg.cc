#include "models/vgg.h"

#include <string>

#include "models/features_classifier.h"
#include "models/nn/conv_blocks.h"
#include "models/nn/dense.h"
#include "ops/elementwise/relu.h"
#include "ops/pool/avg_pool2d.h"
#include "ops/pool/max_pool2d.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr int64_t kPixels = 7;
constexpr double kDropout = 0.5, kDeviation = 0.01;

struct Group {
  int64_t channels;
  int64_t convolutions;
};
std::vector<Group> groups(int layers) {
  if (layers == 11) return {{64, 1}, {128, 1}, {256, 2}, {512, 2}, {512, 2}};
  if (layers == 16) return {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
  throw UsageError("there is no VGG of " + std::to_string(layers) +
                   " layers; only of 11 and 16");
}

class Vgg : public FeaturesClassifier {
 public:
  Vgg(int layers, int64_t hidden, const ImageModelOptions& options, ParameterInit& init)
      : FeaturesClassifier(kPixels) {
    int64_t in = options.channels;
    for (const Group& group : groups(layers)) {
      for (int64_t i = 0; i < group.convolutions; ++i) {
        features_.add<Conv2d>(
            Conv2dOptions{
                .in = in, .out = group.channels, .kernel = 3, .padding = 1, .bias = true},
            init);
        in = group.channels;
        if (i + 1 < group.convolutions) features_.apply(relu);
      }
      // ReLU and the maximum commute, but for the sign of a zero; this way a quarter of the
      // values are kept for the ReLU's gradient.
      features_.apply([](const Tensor& x) { return max_pool2d(x, Pool2dAttrs{}); });
      features_.apply(relu);
    }
    const double drop = options.regularise ? kDropout : 0;
    for (const int64_t from : {in * kPixels * kPixels, hidden}) {
      classifier_.add<Dense>(DenseOptions{.in = from, .out = hidden, .deviation = kDeviation},
                             init);
      classifier_.apply(relu);
      classifier_.add<Dropout>(drop);
    }
    classifier_.add<Dense>(
        DenseOptions{.in = hidden, .out = options.classes, .deviation = kDeviation}, init);
  }
};

}  // namespace

std::unique_ptr<ImageModel> make_vgg(int layers, int64_t hidden,
                                     const ImageModelOptions& options, ParameterInit& init) {
  return std::make_unique<Vgg>(layers, hidden, options, init);
}
std::unique_ptr<ImageModel> make_vgg11(const ImageModelOptions& options, ParameterInit& init) {
  return make_vgg(11, kVggHidden, options, init);
}
std::unique_ptr<ImageModel> make_vgg16(const ImageModelOptions& options, ParameterInit& init) {
  return make_vgg(16, kVggHidden, options, init);
}

}  // namespace tidemark
