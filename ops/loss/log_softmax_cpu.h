// log(e^x / sum e^x) of one row.
//
// Not oneDNN's: its approximate logarithm is off by up to 3e-6, so that a certain class would
// have a log-probability above 0, and a loss could be negative. Here it is right to the
// rounding.
#pragma once

#include <cmath>
#include <cstdint>

namespace tidemark::loss {

inline void log_softmax_row(const float* x, float* y, int64_t classes) {
  float largest = x[0];
  for (int64_t c = 1; c < classes; ++c) largest = x[c] > largest ? x[c] : largest;
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - largest);
  const double shift = largest + std::log(sum);
  for (int64_t c = 0; c < classes; ++c) y[c] = static_cast<float>(x[c] - shift);
}

// Elements that one exponential weighs, when work is split among threads.
inline constexpr int64_t kExpElements = 10;

}  // namespace tidemark::loss
