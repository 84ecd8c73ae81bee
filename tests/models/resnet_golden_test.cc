// One SGD step of ResNets against PyTorch, from the same weights and images. The files and how
// they are made: scripts/make_golden.py.
//
// The reference is PyTorch in float64; PyTorch in float32, of which the file has the error, is
// the yardstick. A ReLU whose input is within rounding of zero can fall either way, and then
// one gradient is off by far more than the rest: so the median over tensors is held to a small
// multiple of the yardstick's median, and each tensor to one of its worst.
//
// With bfloat16 the yardstick is PyTorch's torch.autocast, which rounds the same activations
// and weights to 8 bits, in another order of operations. At random weights and small batches
// that is a third of a gradient's norm already, so these gradients are a coarse test, by a
// factor of two; losses and statistics are a sharp one.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/optim/optimizer.h"
#include "models/resnet.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "runtime/session/session.h"
#include "tests/models/golden_images.h"
#include "tests/support/machine.h"

namespace tidemark {
namespace {

using testing::GoldenComparison;
using testing::Json;
using testing::median;
using TensorValues = std::vector<float>;

// Ours and PyTorch's float32 round differently; neither is the better one.
constexpr double kFloat32Multiple = 8;
// The roundings of bfloat16 outweigh all others, and are as many.
constexpr double kBfloat16Multiple = 2;
// A loss is one number, which PyTorch may have right by luck, and CPUs that multiply bfloat16
// themselves (AVX512_BF16) add up in another order than those that do not: two spacings of
// bfloat16 besides.
constexpr double kBfloat16Floor = 2.0 / 256;
// Values in the file have 8 digits; below this a difference says nothing.
constexpr double kFileFloor = 1e-7;

TensorValues values_of(const Tensor& tensor) {
  TensorValues values(static_cast<size_t>(tensor.elements()));
  Session::current().download(tensor, values.data());
  return values;
}

struct Case {
  const char* file;
  DType dtype = DType::kFloat32;

  double floor() const { return dtype == DType::kFloat32 ? kFileFloor : kBfloat16Floor; }
  double multiple() const {
    return dtype == DType::kFloat32 ? kFloat32Multiple : kBfloat16Multiple;
  }
  // Of the yardstick in the file.
  std::string error() const { return dtype == DType::kFloat32 ? "error" : "bfloat16_error"; }
};

class GoldenTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    golden_ =
        testing::read_golden(std::string(TIDEMARK_GOLDEN_DIR "/") + GetParam().file + ".json");
  }
  template <class T>
  T golden(const std::string& key) const {
    return golden_.at(key).get<T>();
  }

  Tensor images() const {
    const int64_t size = golden<int64_t>("image");
    const Shape shape{golden<int64_t>("batch"), size, size, golden<int64_t>("channels")};
    return testing::golden_images(golden_, shape);
  }

  Tensor labels() const { return testing::golden_labels(golden_, golden<int64_t>("batch")); }

  // Compares samples and norm of one tensor; notes both relative errors.
  void compare(const std::string& name, const TensorValues& ours) {
    const Json& expected = golden_.at("tensors").at(name);
    ASSERT_EQ(ours.size(), expected.at("count").get<size_t>()) << name;
    comparisons_[name.substr(0, name.find('/'))].push_back(
        testing::compared(name, expected, ours, expected.at(GetParam().error()).get<double>()));
  }

  // By kind, since rounding touches gradients far more than what a small step makes of them.
  void judge() {
    size_t compared = 0;
    for (const auto& [kind, all] : comparisons_) {
      std::vector<double> errors, yardsticks;
      for (const GoldenComparison& one : all) {
        errors.push_back(one.error);
        yardsticks.push_back(one.yardstick);
      }
      const double worst = *std::max_element(yardsticks.begin(), yardsticks.end());
      for (const GoldenComparison& one : all) {
        EXPECT_LE(one.error, GetParam().multiple() * worst + kFileFloor) << one.name;
      }
      EXPECT_LE(median(errors), GetParam().multiple() * median(yardsticks) + kFileFloor)
          << kind;
      compared += all.size();
    }
    EXPECT_EQ(compared, golden_.at("tensors").size());
  }

  Json golden_;
  std::map<std::string, std::vector<GoldenComparison>>
      comparisons_;  // "gradient", "parameter", ...
};

TEST_P(GoldenTest, OneSgdStepAgreesWithPyTorch) {
  if (GetParam().dtype == DType::kBFloat16) TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  Session session(
      {.device = "cpu", .threads = testing::test_threads(), .budget = Bytes(int64_t{2} << 30)});
  ResNetOptions options = resnet_options(golden<std::string>("model"));
  options.cifar_stem = golden<bool>("cifar_stem");
  options.in_channels = golden<int64_t>("channels");
  options.classes = golden<int64_t>("classes");
  options.residual_gamma = golden<float>("residual_gamma");
  ParameterInit init(golden<uint64_t>("seed"));
  ResNet model(options, init);
  model.compute_in(GetParam().dtype);
  const auto sgd =
      make_sgd(model.parameters(), {.lr = golden<double>("learning_rate"),
                                    .momentum = golden<double>("momentum"),
                                    .weight_decay = golden<double>("weight_decay")});
  float loss = 0, loss_after = 0;
  session.step([&] {
    const Tensor result = cross_entropy(model.forward(images()), labels());
    session.download(result, &loss);
    backward(result);
    for (const NamedTensor& one : model.parameters()) {
      EXPECT_EQ(grad_of(one.tensor).dtype(), DType::kFloat32);
      compare("gradient/" + one.name, values_of(grad_of(one.tensor)));
    }
    sgd->step();
  });
  for (const NamedTensor& one : model.parameters()) {
    compare("parameter/" + one.name, values_of(one.tensor));
  }
  for (const NamedTensor& one : model.buffers()) {
    compare("buffer/" + one.name, values_of(one.tensor));
  }
  judge();
  session.step([&] {
    const NoGrad no_grad;
    session.download(cross_entropy(model.forward(images()), labels()), &loss_after);
  });
  const double scale = golden<double>("loss");
  const double multiple = GetParam().multiple();
  EXPECT_NEAR(
      loss, scale,
      multiple * golden<double>("loss_" + GetParam().error()) + GetParam().floor() * scale);
  EXPECT_NEAR(loss_after, golden<double>("loss_after"),
              multiple * golden<double>("loss_after_" + GetParam().error()) +
                  GetParam().floor() * scale);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest,
                         ::testing::Values(Case{"resnet18_cifar"}, Case{"resnet50_imagenet"},
                                           Case{"resnet18_cifar", DType::kBFloat16}),
                         [](const auto& one) {
                           return std::string(one.param.file) +
                                  (one.param.dtype == DType::kFloat32 ? "" : "_bfloat16");
                         });

}  // namespace
}  // namespace tidemark
