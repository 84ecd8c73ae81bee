#include "models/googlenet.h"

#include "models/nn/conv_blocks.h"
#include "ops/pool/avg_pool2d.h"
#include "ops/pool/max_pool2d.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"

namespace tidemark {
namespace {

constexpr double kDropout = 0.2;

ConvNormOptions conv(const Conv2dOptions& options) {
  return {.conv = options, .norm = {.eps = 1e-3}, .conv_name = "conv", .norm_name = "bn"};
}

// The last window may reach beyond the end.
Tensor pool(const Tensor& x, int64_t window, int64_t stride, int64_t padding) {
  return max_pool2d(x, {.window = {window, window},
                        .stride = {stride, stride},
                        .padding = {padding, padding},
                        .ceil = 1});
}

struct Branches {
  int64_t one;             // 1x1
  int64_t reduce3, three;  // 1x1, 3x3
  int64_t reduce5, five;   // 1x1, "5x5"
  int64_t pooled;          // max pooling, 1x1
  int64_t out() const { return one + three + five + pooled; }
};

class Inception : public Module {
 public:
  Inception(int64_t in, const Branches& b, ParameterInit& init)
      : branch1_(conv({.in = in, .out = b.one}), init) {
    branch2_.add<ConvNorm>(conv({.in = in, .out = b.reduce3}), init);
    branch2_.add<ConvNorm>(conv({.in = b.reduce3, .out = b.three, .kernel = 3, .padding = 1}),
                           init);
    branch3_.add<ConvNorm>(conv({.in = in, .out = b.reduce5}), init);
    branch3_.add<ConvNorm>(conv({.in = b.reduce5, .out = b.five, .kernel = 3, .padding = 1}),
                           init);
    branch4_.apply([](const Tensor& x) { return pool(x, 3, 1, 1); });
    branch4_.add<ConvNorm>(conv({.in = in, .out = b.pooled}), init);
    register_child("branch1", branch1_);
    register_child("branch2", branch2_);
    register_child("branch3", branch3_);
    register_child("branch4", branch4_);
  }
  Tensor forward(const Tensor& x) const {
    const Scope scope(*this);
    return concat(
        {branch1_.forward(x), branch2_.forward(x), branch3_.forward(x), branch4_.forward(x)},
        3);
  }

 private:
  ConvNorm branch1_;
  Sequential branch2_, branch3_, branch4_;
};

struct Block {
  const char* name;
  Branches branches;
  int64_t pool;  // window of the max pooling of stride 2 that follows; 0: none
};
constexpr Block kBlocks[] = {
    {"inception3a", {64, 96, 128, 16, 32, 32}, 0},
    {"inception3b", {128, 128, 192, 32, 96, 64}, 3},
    {"inception4a", {192, 96, 208, 16, 48, 64}, 0},
    {"inception4b", {160, 112, 224, 24, 64, 64}, 0},
    {"inception4c", {128, 128, 256, 24, 64, 64}, 0},
    {"inception4d", {112, 144, 288, 32, 64, 64}, 0},
    {"inception4e", {256, 160, 320, 32, 128, 128}, 2},
    {"inception5a", {256, 160, 320, 32, 128, 128}, 0},
    {"inception5b", {384, 192, 384, 48, 128, 128}, 0},
};

class GoogLeNet : public ImageModel {
 public:
  GoogLeNet(const ImageModelOptions& options, ParameterInit& init)
      : conv1_(conv({.in = options.channels,
                     .out = 64,
                     .kernel = 7,
                     .stride = options.small_images ? 1 : 2,
                     .padding = 3}),
               init),
        conv2_(conv({.in = 64, .out = 64}), init),
        conv3_(conv({.in = 64, .out = 192, .kernel = 3, .padding = 1}), init),
        dropout_(options.regularise ? kDropout : 0) {
    register_child("conv1", conv1_);
    register_child("conv2", conv2_);
    register_child("conv3", conv3_);
    int64_t in = 192;
    for (const Block& block : kBlocks) {
      blocks_.push_back(std::make_unique<Inception>(in, block.branches, init));
      register_child(block.name, *blocks_.back());
      in = block.branches.out();
    }
    fc_ = std::make_unique<Linear>(in, options.classes, init);
    register_child("dropout", dropout_);
    register_child("fc", *fc_);
  }
  Tensor forward(const Tensor& images) const override {
    Tensor x = pool(conv1_.forward(images), 3, 2, 0);
    x = pool(conv3_.forward(conv2_.forward(x)), 3, 2, 0);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      x = blocks_[i]->forward(x);
      if (kBlocks[i].pool) x = pool(x, kBlocks[i].pool, 2, 0);
    }
    return fc_->forward(dropout_.forward(flatten(adaptive_avg_pool2d(x, 1, 1))));
  }

 private:
  ConvNorm conv1_, conv2_, conv3_;
  std::vector<std::unique_ptr<Inception>> blocks_;
  Dropout dropout_;
  std::unique_ptr<Linear> fc_;
};

}  // namespace

std::unique_ptr<ImageModel> make_googlenet(const ImageModelOptions& options,
                                           ParameterInit& init) {
  return std::make_unique<GoogLeNet>(options, init);
}

}  // namespace tidemark
