#include "models/alexnet.h"

#include "models/features_classifier.h"
#include "models/nn/conv_blocks.h"
#include "models/nn/dense.h"
#include "ops/elementwise/relu.h"
#include "ops/pool/max_pool2d.h"

namespace tidemark {
namespace {

constexpr int64_t kPixels = 6, kHidden = 4096;
constexpr double kDropout = 0.5, kDeviation = 0.01;

class AlexNet : public FeaturesClassifier {
 public:
  AlexNet(const ImageModelOptions& options, ParameterInit& init) : FeaturesClassifier(kPixels) {
    const auto conv = [&](Conv2dOptions layer) {
      layer.bias = true;
      features_.add<Conv2d>(layer, init);
    };
    // Before the ReLU, with which the maximum commutes: fewer values are kept for its gradient.
    const auto pool = [&] {
      features_.apply([](const Tensor& x) {
        return max_pool2d(x, {.window = {3, 3}, .stride = {2, 2}});
      });
    };
    conv({.in = options.channels, .out = 64, .kernel = 11, .stride = 4, .padding = 2});
    pool();
    features_.apply(relu);
    conv({.in = 64, .out = 192, .kernel = 5, .padding = 2});
    pool();
    features_.apply(relu);
    conv({.in = 192, .out = 384, .kernel = 3, .padding = 1});
    features_.apply(relu);
    conv({.in = 384, .out = 256, .kernel = 3, .padding = 1});
    features_.apply(relu);
    conv({.in = 256, .out = 256, .kernel = 3, .padding = 1});
    pool();
    features_.apply(relu);
    const double drop = options.regularise ? kDropout : 0;
    const auto hidden = [&](int64_t in) {
      classifier_.add<Dropout>(drop);
      classifier_.add<Dense>(DenseOptions{.in = in, .out = kHidden, .deviation = kDeviation},
                             init);
      classifier_.apply(relu);
    };
    hidden(256 * kPixels * kPixels);
    hidden(kHidden);
    classifier_.add<Dense>(
        DenseOptions{.in = kHidden, .out = options.classes, .deviation = kDeviation}, init);
  }
};

}  // namespace

std::unique_ptr<ImageModel> make_alexnet(const ImageModelOptions& options,
                                         ParameterInit& init) {
  return std::make_unique<AlexNet>(options, init);
}

}  // namespace tidemark
