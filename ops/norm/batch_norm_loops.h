// The inner loops of batch normalisation over consecutive rows of C channels. They are compiled
// for several instruction sets; the best one that this processor has is chosen once.
//
// A few rows (kBlockFloats) are summed in float, then blocks in double. The sums are as
// accurate as sums in double, at the speed of float.
//
// Threads: any; no state.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/elementwise/activation.h"

namespace tidemark {

// Rows summed in float before adding to the double sum; such a block fits in the first-level
// cache.
inline int64_t block_rows(int64_t channels) {
  constexpr int64_t kBlockFloats = 6 << 10;
  return std::clamp<int64_t>(kBlockFloats / channels / 4 * 4, 4, 256);
}

// Inputs of the gradient's loops: arrays with one element per channel.
struct GradChannels {
  const float* mean;
  const float* scale;     // gamma * inv
  const float* shift;     // beta - mean * scale; not used without an activation
  const float* slope;     // coefficient of x - mean in gx
  const float* constant;  // constant term of gx
};

// Those that depend on the activation f. g is f'(x * scale + shift) gy.
template <class T>
struct ActivatedLoops {
  // y = f(x * scale + shift [+ residual]). `residual` may be null.
  void (*affine)(const T* x, const float* scale, const float* shift, const T* residual, T* y,
                 int64_t rows, int64_t channels);
  // Sums over a block of rows: sum of g, and sum of g * (x - mean).
  void (*grad_sums)(const T* x, const T* gy, const GradChannels& channel, float* sum,
                    float* product, int64_t rows, int64_t channels);
  // gx = scale * g + slope * (x - mean) + constant
  void (*grad_apply)(const T* x, const T* gy, const GradChannels& channel, T* gx, int64_t rows,
                     int64_t channels);
};

// T: float or BFloat16, the stored type of activations.
template <class T>
struct BatchNormLoops {
  // Means of a block of rows, and sums of squared distances from those means.
  void (*moments)(const T* x, int64_t rows, int64_t channels, float* mean, float* squares);
  // Of `n` elements, the first of which begins a word (elementwise/relu.h).
  void (*signs)(const T* y, int64_t n, uint32_t* signs);
  std::array<ActivatedLoops<T>, 4> by_activation;

  const ActivatedLoops<T>& with(Activation f) const {
    return by_activation[static_cast<size_t>(f)];
  }
};

template <class T>
const BatchNormLoops<T>& batch_norm_loops();

// Rewrites the normalisation as y = x * scale + shift. If `shift` is null, `beta` may be null
// too.
void fold_batch_norm(int64_t channels, double eps, const float* gamma, const float* beta,
                     const float* mean, const float* var, float* scale, float* shift);

}  // namespace tidemark
