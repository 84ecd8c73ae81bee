// Gradients of networks for images against PyTorch, from the same parameters and images,
// without dropout. The file and how it is made: scripts/make_golden.py, which also says by what
// the errors are judged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/image_models.h"
#include "models/resnet3d.h"
#include "models/unet.h"
#include "models/vgg.h"
#include "models/vision_transformer.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/inplace.h"
#include "ops/loss/loss.h"
#include "ops/view/view.h"
#include "runtime/session/session.h"
#include "tests/models/golden_images.h"
#include "tests/support/machine.h"

namespace tidemark {
namespace {

using testing::GoldenComparison;
using testing::Json;
using testing::median;

// Ours and PyTorch's float32 round differently; neither is the better one.
constexpr double kMultiple = 8;
// Values in the file have 6 digits; below this a difference says nothing.
constexpr double kFloor = 3e-6;
// A ReLU whose input is all but zero may take its other side where sums round otherwise, and
// the gradients of all that lies before it then jump. With AVX-512 and two threads none does;
// with other instruction sets and numbers of threads some do. Allowed is this times the largest
// jump that the file has for the network: that of float64 runs off by float32's rounding. Of
// networks without ReLU it is no more than rounding itself; logits and buffers do not jump.
constexpr double kOfTheJump = 2;

bool rounds_as_usual() {
  return best_for_loops(cpu_facts()) == InstructionSet::kAvx512 &&
         Session::current().threads() == 2;
}

const Json& cases() {
  static const Json all = Json::parse(std::ifstream(TIDEMARK_GOLDEN_DIR "/image_models.json"));
  return all;
}

class ImageModelGolden : public ::testing::TestWithParam<size_t> {
 protected:
  template <class T>
  T golden(const char* key) const {
    return case_.at(key).get<T>();
  }

  // A network, and what it makes of images: logits (rows, classes).
  struct Network {
    std::unique_ptr<Module> module;
    std::function<Tensor(const Tensor&)> logits;
  };

  Network make(ParameterInit& init) const {
    const auto name = golden<std::string>("model");
    if (!name.starts_with("unet")) {
      auto classifier = make_classifier(init);
      const ImageModel& model = *classifier;
      return {std::move(classifier), [&model](const Tensor& x) { return model.forward(x); }};
    }
    const auto classes = golden<int64_t>("classes");
    const bool volumes = name.starts_with("unet3d");
    const UNetOptions options{.channels = 3,
                              .classes = classes,
                              .width = golden<int64_t>("width"),
                              .depth = golden<int64_t>("depth"),
                              .widen_first = !volumes,
                              .padded = golden<bool>("padded"),
                              .upsample = upsampling()};
    auto unet = volumes ? make_unet3d(options, init) : make_unet(options, init);
    const SegmentationModel& model = *unet;
    return {std::move(unet), [&model, classes](const Tensor& x) {
              return reshape(model.forward(x), {-1, classes});
            }};
  }
  std::optional<Interpolation> upsampling() const {
    if (!case_.contains("align_corners")) return std::nullopt;
    return golden<bool>("align_corners") ? Interpolation::kLinearAlignCorners
                                         : Interpolation::kLinear;
  }
  std::unique_ptr<ImageModel> make_classifier(ParameterInit& init) const {
    const auto name = golden<std::string>("model");
    const ImageModelOptions options{.image = golden<int64_t>("image"),
                                    .classes = golden<int64_t>("classes"),
                                    .regularise = false};
    if (name == "vgg11") return make_vgg(11, golden<int64_t>("hidden"), options, init);
    if (name == "r3d_18") return make_r3d_18(options, init);
    if (name == "vit") {
      return make_vision_transformer({.patch = golden<int64_t>("patch"),
                                      .width = golden<int64_t>("width"),
                                      .inner = golden<int64_t>("inner"),
                                      .heads = golden<int64_t>("heads"),
                                      .layers = golden<int64_t>("layers")},
                                     options, init);
    }
    return make_image_model(name, options, init);
  }

  // Vectors: 0.1 normal, and 1 more where a normalisation scales by them, which is where they
  // are 1 at first. Others: normal, of deviation sqrt(2 / values for each output).
  void draw(const Module& model) const {
    const NoGrad no_grad;
    uint32_t index = 0;
    for (const NamedTensor& one : model.parameters()) {
      const Shape& shape = one.tensor.shape();
      const int64_t count = shape.elements();
      std::vector<float> values;
      if (shape.rank() == 1) {
        std::vector<float> first(static_cast<size_t>(count));
        Session::current().download(one.tensor, first.data());
        values = draw_normal(golden<uint64_t>("seed"), index, count, 0.1);
        for (float& value : values) value += first[0] == 1 ? 1 : 0;
      } else {
        // (in, out) in an attention, (out, ...) elsewhere.
        const bool in_first = one.name.find("self_attention") != std::string::npos;
        const double outputs = static_cast<double>(shape[in_first ? shape.rank() - 1 : 0]);
        values = draw_normal(golden<uint64_t>("seed"), index, count,
                             std::sqrt(2 * outputs / static_cast<double>(count)));
      }
      copy_(one.tensor, testing::from(values, shape));
      ++index;
    }
  }

  Tensor images() const {
    const int64_t size = golden<int64_t>("image");
    Shape shape{golden<int64_t>("batch")};
    if (case_.contains("frames")) shape.push_back(golden<int64_t>("frames"));
    for (const int64_t extent : {size, size, int64_t{3}}) shape.push_back(extent);
    return testing::golden_images(case_, shape);
  }

  // Compares samples and norm of one tensor; notes both relative errors.
  void compare(const std::string& name, const Tensor& tensor) {
    const auto found = case_.at("tensors").find(name);
    if (found == case_.at("tensors").end()) return;  // zero but for rounding
    std::vector<float> ours(static_cast<size_t>(tensor.elements()));
    Session::current().download(tensor, ours.data());
    ASSERT_EQ(ours.size(), found->at("count").get<size_t>()) << name;
    comparisons_.push_back(
        testing::compared(name, *found, ours, found->at("error").get<double>()));
  }

  void judge() {
    ASSERT_EQ(comparisons_.size(), case_.at("tensors").size());
    std::vector<double> errors, yardsticks;
    for (const GoldenComparison& one : comparisons_) {
      errors.push_back(one.error);
      yardsticks.push_back(one.yardstick);
    }
    const double worst = *std::max_element(yardsticks.begin(), yardsticks.end());
    const double jump = rounds_as_usual() ? 0 : kOfTheJump * golden<double>("jump");
    const auto is_gradient = [](const GoldenComparison& one) {
      return one.name.starts_with("gradient/");
    };
    auto gradients = std::ranges::count_if(comparisons_, is_gradient);
    std::vector<double> forward_errors, forward_yardsticks;
    for (const GoldenComparison& one : comparisons_) {
      // A few samples stand for all of a tensor: three times what all of it would be off by.
      const double bound = 3 * (kMultiple * worst + kFloor);
      // Nothing lies between the last layer and the loss: its weight and bias cannot jump.
      const bool may_jump = is_gradient(one) && gradients-- > 2;
      EXPECT_LE(one.error, may_jump ? std::max(bound, jump) : bound) << one.name;
      if (may_jump) continue;
      forward_errors.push_back(one.error);
      forward_yardsticks.push_back(one.yardstick);
    }
    EXPECT_LE(median(errors), std::max(kMultiple * median(yardsticks) + kFloor, jump));
    EXPECT_LE(median(forward_errors), kMultiple * median(forward_yardsticks) + kFloor);
  }
  const Json& case_ = cases().at(GetParam());
  std::vector<GoldenComparison> comparisons_;
};

TEST_P(ImageModelGolden, GradientsAgreeWithPyTorch) {
  Session session(
      {.device = "cpu", .threads = testing::test_threads(), .budget = Bytes(int64_t{2} << 30)});
  ParameterInit init(1);
  const Network network = make(init);
  const Module& model = *network.module;
  draw(model);
  session.step([&] {
    const Tensor logits = network.logits(images());
    compare("logits", logits);
    backward(cross_entropy(logits, testing::golden_labels(case_, logits.extent(0))));
    for (const NamedTensor& one : model.parameters()) {
      compare("gradient/" + one.name, grad_of(one.tensor));
    }
  });
  for (const NamedTensor& one : model.buffers()) compare("buffer/" + one.name, one.tensor);
  judge();
}

INSTANTIATE_TEST_SUITE_P(Networks, ImageModelGolden,
                         ::testing::Range(size_t{0}, cases().size()),
                         [](const ::testing::TestParamInfo<size_t>& index) {
                           return cases().at(index.param).at("model").get<std::string>();
                         });

}  // namespace
}  // namespace tidemark
