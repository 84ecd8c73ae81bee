// Convolution of clips, (N, D, H, W, C).
//
// Threads: the session's issuing thread.
#pragma once

#include <array>
#include <cstdint>

#include "models/nn/module.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

struct Conv3dOptions {
  int64_t in = 0;  // channels
  int64_t out = 0;
  // Time, height, width.
  std::array<int64_t, 3> kernel{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1};
  std::array<int64_t, 3> padding{0, 0, 0};
};

// weight (K, T, R, S, C). No bias, because batch normalisation follows and has one.
class Conv3d : public Module {
 public:
  Conv3d(const Conv3dOptions& options, ParameterInit& init);
  Tensor forward(const Tensor& x) const;

 private:
  Conv3dOptions options_;
  Tensor weight_;
};

}  // namespace tidemark
