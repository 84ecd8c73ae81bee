// A fully connected layer, as used in transformers.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>

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

// x (..., in) -> (..., out). weight, and bias (out) if there is one.
class Dense : public Module {
 public:
  Dense(const DenseOptions& options, ParameterInit& init);
  Tensor forward(const Tensor& x) const;
  // For an operator that takes it itself, in the type that forward computes in (as
  // Embedding's).
  Tensor weight() const { return working(weight_); }

 private:
  DenseOptions options_;
  Tensor weight_;
  Tensor bias_;  // undefined if there is none
};

}  // namespace tidemark
