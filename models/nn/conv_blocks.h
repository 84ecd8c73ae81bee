// The building blocks of convolutional networks, one level above layers.h. Images are (N, H, W,
// C).
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/nn/layers.h"
#include "models/nn/module.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

// Applies its parts in order. Each is named by its position, as in PyTorch: "0.weight", ...
class Sequential : public Module {
 public:
  using Function = std::function<Tensor(const Tensor&)>;

  // Adds a part that has `Tensor forward(const Tensor&) const`. The sequence owns it.
  template <class Part, class... Args>
  Part& add(Args&&... args) {
    auto part = std::make_unique<Part>(std::forward<Args>(args)...);
    Part& made = *part;
    register_child(std::to_string(position_), made);
    parts_.push_back(std::move(part));
    apply([&made](const Tensor& x) {
      const Scope scope(made);
      return made.forward(x);
    });
    return made;
  }
  // Adds a part without parameters; it takes a position too.
  void apply(Function function) {
    functions_.push_back(std::move(function));
    ++position_;
  }
  // Skips a position that PyTorch fills and that needs no part here.
  void skip() { ++position_; }

  Tensor forward(const Tensor& x) const;

 private:
  std::vector<std::unique_ptr<Module>> parts_;
  std::vector<Function> functions_;
  int64_t position_ = 0;
};

struct ConvNormOptions {
  Conv2dOptions conv;
  Activation activation = Activation::kReLU;
  BatchNormOptions norm{};
  std::string conv_name = "0", norm_name = "1";
};

// Convolution, batch normalisation, activation.
class ConvNorm : public Module {
 public:
  ConvNorm(const ConvNormOptions& options, ParameterInit& init);
  Tensor forward(const Tensor& x) const;

 private:
  Activation activation_;
  Conv2d conv_;
  BatchNorm2d norm_;
};

// Batch normalisation and ReLU as one operator.
class NormRelu : public BatchNorm2d {
 public:
  using BatchNorm2d::BatchNorm2d;
  Tensor forward(const Tensor& x) const { return forward_relu(x); }
};

// x times a gate for each image and channel: sigmoid(fc2(silu(fc1(mean of x over the image)))),
// with fc1 and fc2 as 1x1 convolutions. Hu et al. 2018 (arXiv:1709.01507), with SiLU as in
// EfficientNet.
class SqueezeExcitation : public Module {
 public:
  SqueezeExcitation(int64_t channels, int64_t squeezed, ParameterInit& init);
  Tensor forward(const Tensor& x) const;

 private:
  Conv2d fc1_, fc2_;
};

// Drops each image of the batch, independently, with probability p (all its elements become 0);
// scales the other images by 1 / (1 - p). Huang et al. 2016 (arXiv:1603.09382). Returns x
// itself if p = 0.
Tensor stochastic_depth(const Tensor& x, double p);

}  // namespace tidemark
