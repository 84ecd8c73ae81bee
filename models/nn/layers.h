// The basic layers of networks. Images are (N, H, W, C).
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>

#include "models/nn/module.h"
#include "models/nn/parameter_init.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/gelu.h"

namespace tidemark {

struct Conv2dOptions {
  int64_t in = 0;  // channels
  int64_t out = 0;
  int64_t kernel = 1;  // height and width
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = false;  // batch normalisation, where it follows, has a bias already
};

// weight (K, R, S, C / groups); bias (K), 0 at first.
class Conv2d : public Module {
 public:
  Conv2d(const Conv2dOptions& options, ParameterInit& init);
  Tensor forward(const Tensor& x) const;

 private:
  Conv2dOptions options_;
  Tensor weight_;
  Tensor bias_;  // undefined if there is no bias
};

struct BatchNormOptions {
  float gamma = 1;  // initial value of the weight
  double eps = 1e-5;
  double momentum = 0.1;  // share of the batch in the running statistics
};

// weight, bias, running_mean, running_var (C). In training mode, normalises by the batch's own
// statistics and moves the running statistics towards them; in evaluation, uses the running
// statistics.
class BatchNorm2d : public Module {
 public:
  BatchNorm2d(int64_t channels, ParameterInit& init, const BatchNormOptions& options = {});
  // As one operator. A residual needs a ReLU.
  Tensor forward(const Tensor& x, Activation activation = Activation::kNone,
                 const Tensor& residual = {}) const;
  Tensor forward_relu(const Tensor& x, const Tensor& residual = {}) const {
    return forward(x, Activation::kReLU, residual);
  }

 private:
  // Updates the running statistics with those of a batch shaped like x.
  void track(const Tensor& x, const Tensor& mean, const Tensor& var) const;

  BatchNormOptions options_;
  Tensor weight_;
  Tensor bias_;
  Tensor running_mean_;
  Tensor running_var_;
};

// x (N, in) -> (N, out). weight (out, in), bias (out), both uniform in +-1/sqrt(in) at first.
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, ParameterInit& init);
  Tensor forward(const Tensor& x) const;

 private:
  Tensor weight_;
  Tensor bias_;
};

// Over the last dimension of x. weight, bias (C), initially 1 and 0.
class LayerNorm : public Module {
 public:
  LayerNorm(int64_t columns, ParameterInit& init, double eps = 1e-5);
  Tensor forward(const Tensor& x) const;

 private:
  double eps_;
  Tensor weight_;
  Tensor bias_;
};

// By the root mean square over the last dimension of x. weight (C), initially 1.
class RmsNorm : public Module {
 public:
  RmsNorm(int64_t columns, ParameterInit& init, double eps = 1e-6);
  Tensor forward(const Tensor& x) const;

 private:
  double eps_;
  Tensor weight_;
};

struct EmbeddingOptions {
  int64_t rows = 0;
  int64_t columns = 0;
  // A row that stands for padding: initially 0, and without a gradient.
  std::optional<int64_t> padding_idx{};
  double deviation = 1;  // initial weights are normal around 0
};

// ids (...) -> (..., columns). weight (rows, columns).
class Embedding : public Module {
 public:
  Embedding(const EmbeddingOptions& options, ParameterInit& init);
  Tensor forward(const Tensor& ids) const;
  // For a layer that shares the weight, in the type that forward computes in: the same leaf, or
  // a cast of it. Gradients of both uses are added.
  Tensor weight() const { return working(weight_); }

 private:
  std::optional<int64_t> padding_idx_;
  Tensor weight_;
};

// In training mode, drops each element with probability p and scales the others by 1 / (1 - p).
// In evaluation, returns x itself. No parameters.
class Dropout : public Module {
 public:
  explicit Dropout(double p) : p_(p) {}
  Tensor forward(const Tensor& x) const;

 private:
  double p_;
};

// No parameters.
class Gelu : public Module {
 public:
  explicit Gelu(GeluKind kind = GeluKind::kExact) : kind_(kind) {}
  Tensor forward(const Tensor& x) const;

 private:
  GeluKind kind_;
};

}  // namespace tidemark
