#include "ops/norm/batch_norm_loops.h"

#include <cmath>

#include "ops/elementwise/sign_words.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/vector_math.h"
#include "runtime/core/bfloat16.h"

namespace tidemark {
namespace {

template <class T>
TIDEMARK_INLINE void moments_of(const T* __restrict x, int64_t rows, int64_t channels,
                                float* __restrict mean, float* __restrict squares) {
  for (int64_t c = 0; c < channels; ++c) mean[c] = squares[c] = 0;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* x0 = x + r * channels;
    const T *x1 = x0 + channels, *x2 = x1 + channels, *x3 = x2 + channels;
    for (int64_t c = 0; c < channels; ++c) mean[c] += (x0[c] + x1[c]) + (x2[c] + x3[c]);
  }
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < channels; ++c) mean[c] += x[r * channels + c];
  }
  const float share = 1.0f / static_cast<float>(rows);
  for (int64_t c = 0; c < channels; ++c) mean[c] *= share;
  for (r = 0; r + 4 <= rows; r += 4) {
    const T* x0 = x + r * channels;
    const T *x1 = x0 + channels, *x2 = x1 + channels, *x3 = x2 + channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float d0 = x0[c] - mean[c], d1 = x1[c] - mean[c];
      const float d2 = x2[c] - mean[c], d3 = x3[c] - mean[c];
      squares[c] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);
    }
  }
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < channels; ++c) {
      const float d = x[r * channels + c] - mean[c];
      squares[c] += d * d;
    }
  }
}

template <class T>
TIDEMARK_INLINE void write_signs(const T* y, int64_t n, uint32_t* __restrict signs) {
  for (int64_t at = 0; at < n; at += kSignsPerWord) {
    *signs++ = sign_word(y + at, n - at < kSignsPerWord ? n - at : kSignsPerWord);
  }
}

// No __restrict: y may be x or the residual.
template <Activation f, class T>
TIDEMARK_INLINE void affine_of(const T* x, const float* __restrict scale,
                               const float* __restrict shift, const T* residual, T* y,
                               int64_t rows, int64_t channels) {
  for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
    if (residual) {
      TIDEMARK_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        y[c] = activate<f, VectorMath>(x[c] * scale[c] + shift[c] + residual[c]);
      }
      residual += channels;
    } else {
      TIDEMARK_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        y[c] = activate<f, VectorMath>(x[c] * scale[c] + shift[c]);
      }
    }
  }
}

// The gradient g in front of the activation.
template <Activation f>
TIDEMARK_INLINE float before(float x, float gy, float scale, float shift) {
  return activation_grad<f, VectorMath>(gy, x * scale + shift);
}

template <Activation f, class T>
TIDEMARK_INLINE void grad_sums_of(const T* __restrict x, const T* __restrict gy,
                                  const GradChannels& channel, float* __restrict sum,
                                  float* __restrict product, int64_t rows, int64_t channels) {
  const float* __restrict mean = channel.mean;
  const float* __restrict scale = channel.scale;
  const float* __restrict shift = channel.shift;
  for (int64_t c = 0; c < channels; ++c) sum[c] = product[c] = 0;
  int64_t at = 0;
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2, at += 2 * channels) {
    const T *x0 = x + at, *x1 = x0 + channels;
    const T *gy0 = gy + at, *gy1 = gy0 + channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float g0 = before<f>(x0[c], gy0[c], scale[c], shift[c]);
      const float g1 = before<f>(x1[c], gy1[c], scale[c], shift[c]);
      sum[c] += g0 + g1;
      product[c] += g0 * (x0[c] - mean[c]) + g1 * (x1[c] - mean[c]);
    }
  }
  for (; r < rows; ++r, at += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float g = before<f>(x[at + c], gy[at + c], scale[c], shift[c]);
      sum[c] += g;
      product[c] += g * (x[at + c] - mean[c]);
    }
  }
}

// No __restrict: gx may be x or gy.
template <Activation f, class T>
TIDEMARK_INLINE void grad_apply_of(const T* x, const T* gy, const GradChannels& channel, T* gx,
                                   int64_t rows, int64_t channels) {
  const float* __restrict mean = channel.mean;
  const float* __restrict scale = channel.scale;
  const float* __restrict slope = channel.slope;
  const float* __restrict constant = channel.constant;
  const float* __restrict shift = channel.shift;
  for (int64_t r = 0; r < rows; ++r) {
    TIDEMARK_INDEPENDENT_ITERATIONS
    for (int64_t c = 0; c < channels; ++c) {
      const float g = before<f>(x[c], gy[c], scale[c], shift[c]);
      gx[c] = scale[c] * g + (slope[c] * (x[c] - mean[c]) + constant[c]);
    }
    x += channels, gy += channels, gx += channels;
  }
}

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                                      \
  struct name {                                                                               \
    template <class T>                                                                        \
    __VA_ARGS__ static void moments(const T* x, int64_t rows, int64_t channels, float* mean,  \
                                    float* squares) {                                         \
      moments_of(x, rows, channels, mean, squares);                                           \
    }                                                                                         \
    template <class T>                                                                        \
    __VA_ARGS__ static void signs(const T* y, int64_t n, uint32_t* out) {                     \
      write_signs(y, n, out);                                                                 \
    }                                                                                         \
    template <Activation f, class T>                                                          \
    __VA_ARGS__ static void affine(const T* x, const float* scale, const float* shift,        \
                                   const T* residual, T* y, int64_t rows, int64_t channels) { \
      affine_of<f>(x, scale, shift, residual, y, rows, channels);                             \
    }                                                                                         \
    template <Activation f, class T>                                                          \
    __VA_ARGS__ static void grad_sums(const T* x, const T* gy, const GradChannels& channel,   \
                                      float* sum, float* product, int64_t rows,               \
                                      int64_t channels) {                                     \
      grad_sums_of<f>(x, gy, channel, sum, product, rows, channels);                          \
    }                                                                                         \
    template <Activation f, class T>                                                          \
    __VA_ARGS__ static void grad_apply(const T* x, const T* gy, const GradChannels& channel,  \
                                       T* gx, int64_t rows, int64_t channels) {               \
      grad_apply_of<f>(x, gy, channel, gx, rows, channels);                                   \
    }                                                                                         \
    template <Activation f, class T>                                                          \
    static constexpr ActivatedLoops<T> with() {                                               \
      return {affine<f, T>, grad_sums<f, T>, grad_apply<f, T>};                               \
    }                                                                                         \
    template <class T>                                                                        \
    static constexpr BatchNormLoops<T> table() {                                              \
      return {moments<T>,                                                                     \
              signs<T>,                                                                       \
              {with<Activation::kNone, T>(), with<Activation::kReLU, T>(),                    \
               with<Activation::kReLU6, T>(), with<Activation::kSiLU, T>()}};                 \
    }                                                                                         \
  };

TIDEMARK_FOR_EACH_INSTRUCTION_SET(TIDEMARK_DEFINE_LOOPS)

}  // namespace

template <class T>
const BatchNormLoops<T>& batch_norm_loops() {
  static const BatchNormLoops<T> best = best_instruction_set_for<T, Baseline, Avx2, Avx512>();
  return best;
}
template const BatchNormLoops<float>& batch_norm_loops();
template const BatchNormLoops<BFloat16>& batch_norm_loops();

void fold_batch_norm(int64_t channels, double eps, const float* gamma, const float* beta,
                     const float* mean, const float* var, float* scale, float* shift) {
  for (int64_t c = 0; c < channels; ++c) {
    scale[c] = static_cast<float>(gamma[c] / std::sqrt(double{var[c]} + eps));
    if (shift) shift[c] = static_cast<float>(beta[c] - double{mean[c]} * scale[c]);
  }
}

}  // namespace tidemark
