// Private to this folder: the CPU's loops over rows of scores, and sums over a batch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/kernels/vector_math.h"
#include "ops/loss/batch.h"

namespace tidemark::loss {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
// An exponential counts as this many elements when work is split among threads.
inline constexpr int64_t kExpElements = 4;

// Compiled for this processor's instruction set.
template <class T>
struct RowLoops {
  RowSums (*sums)(const T* x, int64_t classes);
  // g times the gradient of all classes as if none were the label. dx may be x.
  void (*gradient)(const T* x, RowSums sums, float g, T* dx, int64_t classes);
  // The same for float scores; dx may be x if T is float.
  void (*gradient_of_float)(const float* x, RowSums sums, float g, T* dx, int64_t classes);
};
// For float and BFloat16.
template <class T>
const RowLoops<T>& row_loops();

inline double log_prob(float score, RowSums sums) {
  return double{score} - sums.largest + std::log(double{sums.inverse});
}

// Writes a row's gradient, which is 0 for an ignored label and NaN for one out of range. `loop`
// is one of the two above.
template <class From, class To>
void write_gradient(const Batch& batch, void (*loop)(const From*, RowSums, float, To*, int64_t),
                    const From* x, int64_t label, RowSums sums, float g, To* dx) {
  if (batch.ignored(label) || !batch.valid(label)) {
    std::fill_n(dx, batch.classes, To(batch.ignored(label) ? 0 : kNaN));
    return;
  }
  const float probability = VectorMath::exp_negative(x[label] - sums.largest) * sums.inverse;
  loop(x, sums, g, dx, batch.classes);  // may overwrite x
  dx[label] = (probability - 1) * g;
}

// The number of rows that count; 1 if none does, as it divides a sum that is 0.
inline double counted(const Batch& batch, const int64_t* labels) {
  if (!batch.attrs.ignores) return static_cast<double>(batch.rows);
  int64_t count = 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    count += !batch.ignored(labels[row * batch.label_step]);
  }
  return static_cast<double>(std::max<int64_t>(1, count));
}

// The sum of -log_prob(row, label) over the rows that count.
template <class LogProb>
double summed_loss(const Batch& batch, const int64_t* labels, const LogProb& log_prob) {
  double sum = 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t label = labels[row * batch.label_step];
    if (batch.ignored(label)) continue;
    sum -= batch.valid(label) ? log_prob(row, label) : double{kNaN};
  }
  return sum;
}

}  // namespace tidemark::loss
