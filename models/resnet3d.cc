#include "models/resnet3d.h"

#include <string>

#include "ops/pool/avg_pool2d.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr int64_t kStemChannels = 64, kLayers = 4, kBlocksOfLayer = 2;

Conv3dOptions cube(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  const int64_t padding = kernel / 2;
  return {.in = in,
          .out = out,
          .kernel = {kernel, kernel, kernel},
          .stride = {stride, stride, stride},
          .padding = {padding, padding, padding}};
}

}  // namespace

ResNet3d::ConvNorm::ConvNorm(const Conv3dOptions& options, ParameterInit& init)
    : conv_(options, init), norm_(options.out, init) {
  register_child("0", conv_);
  register_child("1", norm_);
}

ResNet3d::Block::Block(int64_t in, int64_t out, int64_t stride, ParameterInit& init)
    : conv1_(cube(in, out, 3, stride), init), conv2_(cube(out, out, 3, 1), init) {
  register_child("conv1", conv1_);
  register_child("conv2", conv2_);
  if (stride != 1 || in != out) {
    downsample_.emplace(cube(in, out, 1, stride), init);
    register_child("downsample", *downsample_);
  }
}

Tensor ResNet3d::Block::forward(const Tensor& x) const {
  const Tensor y = conv1_.forward_relu(x);
  return conv2_.forward_relu(y, downsample_ ? downsample_->forward(x) : x);
}

ResNet3d::ResNet3d(const ImageModelOptions& options, ParameterInit& init)
    : stem_({.in = options.channels,
             .out = kStemChannels,
             .kernel = {3, 7, 7},
             .stride = {1, 2, 2},
             .padding = {1, 3, 3}},
            init),
      blocks_([&init] {
        std::vector<std::unique_ptr<Block>> blocks;
        int64_t in = kStemChannels;
        for (int64_t layer = 0; layer < kLayers; ++layer) {
          const int64_t out = kStemChannels << layer;
          for (int64_t i = 0; i < kBlocksOfLayer; ++i) {
            const int64_t stride = layer > 0 && i == 0 ? 2 : 1;
            blocks.push_back(std::make_unique<Block>(in, out, stride, init));
            in = out;
          }
        }
        return blocks;
      }()),
      fc_(kStemChannels << (kLayers - 1), options.classes, init) {
  register_child("stem", stem_);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    register_child("layer" + std::to_string(i / kBlocksOfLayer + 1) + "." +
                       std::to_string(i % kBlocksOfLayer),
                   *blocks_[i]);
  }
  register_child("fc", fc_);
}

Tensor ResNet3d::forward(const Tensor& clips) const {
  if (clips.shape().rank() != 5) {
    throw UsageError("[resnet3d] clips must be (N, D, H, W, channels), not " +
                     clips.shape().to_string());
  }
  Tensor x = stem_.forward_relu(clips);
  for (const auto& block : blocks_) x = block->forward(x);
  // The mean over all positions, with the frames below one another as one image.
  const Shape& shape = x.shape();
  const Tensor tall = reshape(x, {shape[0], shape[1] * shape[2], shape[3], shape[4]});
  return fc_.forward(flatten(adaptive_avg_pool2d(tall, 1, 1)));
}

std::unique_ptr<ImageModel> make_r3d_18(const ImageModelOptions& options, ParameterInit& init) {
  return std::make_unique<ResNet3d>(options, init);
}

}  // namespace tidemark
