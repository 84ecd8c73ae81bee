#include "examples/planning/steps.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "examples/common/training.h"
#include "models/named.h"
#include "models/resnet3d.h"
#include "models/transformer.h"
#include "models/unet.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "ops/view/view.h"

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
  flags.momentum = request.momentum;
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

// A class for each pixel.
std::function<void()> segmentation_step(const CaptureRequest& request,
                                        const UNetOptions& options, const Shape& images,
                                        std::unique_ptr<SegmentationModel> model) {
  return training_step(request, std::shared_ptr<SegmentationModel>(std::move(model)),
                       [images, options](const SegmentationModel& net) {
                         const Tensor logits =
                             net.forward(empty(DType::kFloat32, images, "images"));
                         const int64_t pixels = logits.elements() / options.classes;
                         return cross_entropy(reshape(logits, {pixels, options.classes}),
                                              empty(DType::kInt64, {pixels}, "labels"));
                       });
}

std::optional<Interpolation> upsampling_of(const CaptureRequest& request) {
  if (!request.model.ends_with("-upsample")) return std::nullopt;
  return Interpolation::kLinear;
}

std::function<void()> unet_step(const CaptureRequest& request) {
  ParameterInit init(0);
  const UNetOptions options{.channels = 3, .upsample = upsampling_of(request)};
  const int64_t size = request.image_size;
  const Shape images{request.batch, size > 0 ? size : 416, size > 0 ? size : 608, 3};
  return segmentation_step(request, options, images, make_unet(options, init));
}

std::function<void()> unet3d_step(const CaptureRequest& request) {
  ParameterInit init(0);
  UNetOptions options = unet3d_as_published();
  options.channels = 1;
  options.padded = true;
  options.upsample = upsampling_of(request);
  const int64_t size = request.image_size > 0 ? request.image_size : 128;
  return segmentation_step(request, options, {request.batch, size / 2, size, size, 1},
                           make_unet3d(options, init));
}

using MakeStep = std::function<void()> (*)(const CaptureRequest&);

const std::vector<Named<MakeStep>>& table() {
  static const std::vector<Named<MakeStep>> steps{
      {"r3d_18", clip_step},   {"transformer-base", translation_step},
      {"unet", unet_step},     {"unet-upsample", unet_step},
      {"unet3d", unet3d_step}, {"unet3d-upsample", unet3d_step}};
  return steps;
}

}  // namespace

const std::vector<std::string>& step_names() {
  static const std::vector<std::string> names = names_of(table());
  return names;
}

std::function<void()> make_step(const CaptureRequest& request) {
  return find_named(table(), request.model)(request);
}

}  // namespace tidemark
