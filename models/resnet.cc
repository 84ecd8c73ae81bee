#include "models/resnet.h"

#include <algorithm>

#include "models/named.h"
#include "ops/pool/avg_pool2d.h"
#include "ops/pool/max_pool2d.h"
#include "ops/view/view.h"

namespace tidemark {
namespace {

const std::vector<Named<ResNetOptions>>& table() {
  static const std::vector<Named<ResNetOptions>> entries{
      {"resnet18", {.blocks = {2, 2, 2, 2}}},
      {"resnet34", {.blocks = {3, 4, 6, 3}}},
      {"resnet50", {.blocks = {3, 4, 6, 3}, .bottleneck = true}},
      {"resnet101", {.blocks = {3, 4, 23, 3}, .bottleneck = true}},
      {"resnext50_32x4d",
       {.blocks = {3, 4, 6, 3}, .bottleneck = true, .groups = 32, .group_width = 4}},
  };
  return entries;
}

constexpr int64_t kStemChannels = 64;

Conv2dOptions stem(const ResNetOptions& options) {
  if (options.cifar_stem) {
    return {.in = options.in_channels, .out = kStemChannels, .kernel = 3, .padding = 1};
  }
  return {
      .in = options.in_channels, .out = kStemChannels, .kernel = 7, .stride = 2, .padding = 3};
}

int64_t inner_channels(const ResNetOptions& options, int64_t width) {
  return options.bottleneck ? width * options.group_width / 64 * options.groups : width;
}

Conv2dOptions first(const ResNetOptions& options, int64_t in, int64_t inner, int64_t stride) {
  if (options.bottleneck) return {.in = in, .out = inner};
  return {.in = in, .out = inner, .kernel = 3, .stride = stride, .padding = 1};
}

Conv2dOptions second(const ResNetOptions& options, int64_t inner, int64_t stride) {
  return {.in = inner,
          .out = inner,
          .kernel = 3,
          .stride = options.bottleneck ? stride : 1,
          .padding = 1,
          .groups = options.groups};
}

}  // namespace

const std::vector<std::string>& resnet_names() {
  static const std::vector<std::string> names = names_of(table());
  return names;
}

ResNetOptions resnet_options(const std::string& name) { return find_named(table(), name); }

ResNetBlock::Projection::Projection(int64_t in, int64_t out, int64_t stride,
                                    ParameterInit& init)
    : conv({.in = in, .out = out, .stride = stride}, init), norm(out, init) {
  register_child("0", conv);
  register_child("1", norm);
}

ResNetBlock::ResNetBlock(const ResNetOptions& options, int64_t in, int64_t width,
                         int64_t stride, ParameterInit& init)
    : out_(options.bottleneck ? width * kExpansion : width),
      inner_(inner_channels(options, width)),
      conv1_(first(options, in, inner_, stride), init),
      bn1_(inner_, init),
      conv2_(second(options, inner_, stride), init),
      bn2_(inner_, init, {.gamma = options.bottleneck ? 1 : options.residual_gamma}) {
  register_child("conv1", conv1_);
  register_child("bn1", bn1_);
  register_child("conv2", conv2_);
  register_child("bn2", bn2_);
  if (options.bottleneck) {
    conv3_.emplace(Conv2dOptions{.in = inner_, .out = out_}, init);
    bn3_.emplace(out_, init, BatchNormOptions{.gamma = options.residual_gamma});
    register_child("conv3", *conv3_);
    register_child("bn3", *bn3_);
  }
  if (stride != 1 || in != out_) {
    downsample_.emplace(in, out_, stride, init);
    register_child("downsample", *downsample_);
  }
}

Tensor ResNetBlock::forward(const Tensor& x) const {
  Tensor y = bn1_.forward_relu(conv1_.forward(x));
  y = conv2_.forward(y);
  if (conv3_) y = conv3_->forward(bn2_.forward_relu(y));
  Tensor around = x;
  if (downsample_) around = downsample_->norm.forward(downsample_->conv.forward(x));
  return (bn3_ ? *bn3_ : bn2_).forward_relu(y, around);
}

ResNet::Layer::Layer(const ResNetOptions& options, int64_t in, int64_t width, int64_t blocks,
                     int64_t stride, ParameterInit& init) {
  for (int64_t i = 0; i < blocks; ++i) {
    const bool leads = i == 0;
    parts.push_back(std::make_unique<ResNetBlock>(options, leads ? in : out(), width,
                                                  leads ? stride : 1, init));
    register_child(std::to_string(i), *parts.back());
  }
}

ResNet::ResNet(const ResNetOptions& options, ParameterInit& init)
    : options_(options),
      conv1_(stem(options), init),
      bn1_(kStemChannels, init),
      layer1_(options, kStemChannels, 64, options.blocks[0], 1, init),
      layer2_(options, layer1_.out(), 128, options.blocks[1], 2, init),
      layer3_(options, layer2_.out(), 256, options.blocks[2], 2, init),
      layer4_(options, layer3_.out(), 512, options.blocks[3], 2, init),
      fc_(layer4_.out(), options.classes, init) {
  register_child("conv1", conv1_);
  register_child("bn1", bn1_);
  register_child("layer1", layer1_);
  register_child("layer2", layer2_);
  register_child("layer3", layer3_);
  register_child("layer4", layer4_);
  register_child("fc", fc_);
}

Tensor ResNet::forward(const Tensor& images) const {
  Tensor x = bn1_.forward_relu(conv1_.forward(images));
  if (!options_.cifar_stem) {
    x = max_pool2d(x, {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  }
  for (const Layer* layer : {&layer1_, &layer2_, &layer3_, &layer4_}) {
    for (const auto& block : layer->parts) x = block->forward(x);
  }
  return fc_.forward(flatten(adaptive_avg_pool2d(x, 1, 1)));
}

std::unique_ptr<ImageModel> make_resnet(const std::string& name,
                                        const ImageModelOptions& options, ParameterInit& init) {
  ResNetOptions resnet = resnet_options(name);
  resnet.cifar_stem = options.small_images;
  resnet.in_channels = options.channels;
  resnet.classes = options.classes;
  return std::make_unique<ResNet>(resnet, init);
}

}  // namespace tidemark
