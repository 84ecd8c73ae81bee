// A fully connected layer, as used in transformers.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>

#include "models/nn/module.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

struct DenseOptions {
  int64_t in = 0;
  int64_t out = 0;
  double deviation = 0.02;  // initial deviation of weights, normal; biases are 0
  bool in_first = false;    // weight is (in, out), as in GPT-2's files, instead of (out, in)
  bool bias = true;
};

// A trained change of low rank to a layer that stays as it is: y += alpha / rank B A dropout(x)
// (LoRA, Hu et al., 2021, arXiv:2106.09685, section 4.1).
struct LowRankOptions {
  int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;  // of x, in training mode
};

// x (..., in) -> (..., out). weight, and bias (out) if there is one.
class Dense : public Module {
 public:
  Dense(const DenseOptions& options, ParameterInit& init);
  Tensor forward(const Tensor& x) const;

  // Adds such a change, with the parameters lora_A.weight (rank, in) and lora_B.weight (out,
  // rank). B is 0 at first, so y stays as it was; A is uniform in +-1 / sqrt(in), as in PEFT.
  // REQUIRES: there is none yet, and the layer computes in its final type.
  void adapt(const LowRankOptions& options, ParameterInit& init);
  bool is_adapted() const { return change_.has_value(); }
  // For operators that multiply by it, in the type that forward computes in; without the
  // change.
  Tensor weight() const { return working(weight_); }
  // The weight, with the change added if there is one; not differentiable.
  Tensor merged_weight() const;
  const DenseOptions& options() const { return options_; }

 private:
  struct LowRankChange {
    Tensor a, b;
    double scale, dropout;
  };

  DenseOptions options_;
  Tensor weight_;
  Tensor bias_;  // undefined if there is none
  std::optional<LowRankChange> change_;
};

}  // namespace tidemark
