#include "examples/planning/steps.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "examples/common/training.h"
#include "models/resnet3d.h"
#include "models/transformer.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"

namespace tidemark {
namespace {

constexpr int64_t kFrames = 16, kClipSize = 112, kClipClasses = 400;  // as on Kinetics
constexpr int64_t kLength = 128;
constexpr double kRate = 1e-3;  // its value does not affect which operators run

Tensor empty(DType dtype, const Shape& shape, const char* name) {
  return Session::current().upload(TensorMeta::contiguous(dtype, shape), Category::kData,
                                   nullptr, {}, name);
}

// A step that trains `model` by the result of `loss`.
template <class Model, class Loss>
std::function<void()> training_step(const CaptureRequest& request, std::shared_ptr<Model> model,
                                    Loss loss) {
  RunFlags flags;
  flags.optimizer = request.optimizer;
  const std::shared_ptr<Optimizer> optimizer =
      make_optimizer(flags, model->parameters(), kRate);
  return [=] {
    const Tensor mean = loss(*model);
    backward(mean);
    optimizer->step();
    read_scalar<float>(mean);
  };
}

std::function<void()> clip_step(const CaptureRequest& request) {
  ParameterInit init(0);
  const int64_t size = request.image_size > 0 ? request.image_size : kClipSize;
  const Shape clips{request.batch, kFrames, size, size, 3};
  return training_step(request,
                       std::make_shared<ResNet3d>(
                           ImageModelOptions{.image = size, .classes = kClipClasses}, init),
                       [clips](const ResNet3d& model) {
                         return cross_entropy(
                             model.forward(empty(DType::kFloat32, clips, "clips")),
                             empty(DType::kInt64, {clips[0]}, "labels"));
                       });
}

std::function<void()> translation_step(const CaptureRequest& request) {
  ParameterInit init(0);
  const int64_t length = request.length > 0 ? request.length : kLength;
  const Shape tokens{request.batch, length};
  return training_step(
      request,
      std::make_shared<Transformer>(
          TransformerOptions{.longest = std::max<int64_t>(length, kLength)}, init),
      [tokens](const Transformer& model) {
        const Tensor logits = model.logits(empty(DType::kInt64, tokens, "source"),
                                           empty(DType::kInt64, tokens, "target"));
        return cross_entropy(logits, empty(DType::kInt64, {tokens.elements()}, "labels"));
      });
}

}  // namespace

const std::vector<std::string>& step_names() {
  static const std::vector<std::string> names{"r3d_18", "transformer-base"};
  return names;
}

std::function<void()> make_step(const CaptureRequest& request) {
  return request.model == "r3d_18" ? clip_step(request) : translation_step(request);
}

}  // namespace tidemark
