// A fully connected layer as transformers have it.
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
  double deviation = 0.02;  // of weights at first, normal; biases are 0
  bool in_first = false;    // weight (in, out), as GPT-2's files have it, instead of (out, in)
};

// x (..., in) -> (..., out). weight, bias (out).
class Dense : public Module {
 public:
  Dense(const DenseOptions& options, ParameterInit& init);
  Tensor forward(const Tensor& x) const;

 private:
  DenseOptions options_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace tidemark
