// The inner loops of batch normalisation over consecutive rows of C channels, compiled for
// several instruction sets; the best that this processor has is chosen once.
//
// Sums run over few rows in float (kBlockFloats), and over blocks in double, so that they are
// as good as sums in double at the speed of float.
//
// Threads: any; no state.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tidemark {

// Rows that are summed in float before going into double; a block stays in the first-level
// cache.
inline int64_t block_rows(int64_t channels) {
  constexpr int64_t kBlockFloats = 6 << 10;
  return std::clamp<int64_t>(kBlockFloats / channels / 4 * 4, 4, 256);
}

// Of one channel-sized array each: what the gradient's loops need.
struct GradChannels {
  const float* mean;
  const float* scale;     // gamma * inv
  const float* shift;     // beta - mean * scale, for a ReLU; else null
  const float* slope;     // of gx in x - mean
  const float* constant;  // of gx
};

// T: float or BFloat16, as which activations are stored.
template <class T>
struct BatchNormLoops {
  // Means and sums of squared distances from them, of a block of rows.
  void (*moments)(const T* x, int64_t rows, int64_t channels, float* mean, float* squares);
  // y = x * scale + shift [+ residual], then max(0, y) if `relu`. `residual` may be null.
  void (*affine)(const T* x, const float* scale, const float* shift, const T* residual,
                 bool relu, T* y, int64_t rows, int64_t channels);
  // Sums over a block of rows: of g, and of g * (x - mean).
  void (*grad_sums)(const T* x, const T* gy, const GradChannels& channel, float* sum,
                    float* product, int64_t rows, int64_t channels);
  // gx = scale * g + slope * (x - mean) + constant
  void (*grad_apply)(const T* x, const T* gy, const GradChannels& channel, T* gx, int64_t rows,
                     int64_t channels);
};

template <class T>
const BatchNormLoops<T>& batch_norm_loops();

// The transform as y = x * scale + shift. `shift` may be null, and then `beta` too.
void fold_batch_norm(int64_t channels, double eps, const float* gamma, const float* beta,
                     const float* mean, const float* var, float* scale, float* shift);

}  // namespace tidemark
