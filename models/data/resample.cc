#include "models/data/resample.h"

#include <algorithm>
#include <cmath>

namespace tidemark {

ResampleAxis::ResampleAxis(int64_t source, double begin, double extent, int64_t target,
                           bool mirror) {
  const double scale = extent / static_cast<double>(target);
  const double support = std::max(scale, 1.0);
  low_ = source;
  start_.push_back(0);
  for (int64_t i = 0; i < target; ++i) {
    const int64_t place = mirror ? target - 1 - i : i;
    const double centre = begin + (static_cast<double>(place) + 0.5) * scale;
    const int64_t first =
        std::max<int64_t>(0, std::llround(std::floor(centre - support + 0.5)));
    const int64_t last =
        std::min<int64_t>(source, std::llround(std::floor(centre + support + 0.5)));
    double sum = 0;
    std::vector<double> weights;
    for (int64_t x = first; x < last; ++x) {
      const double distance = std::abs(static_cast<double>(x) + 0.5 - centre) / support;
      weights.push_back(std::max(0.0, 1.0 - distance));
      sum += weights.back();
    }
    for (double weight : weights) weights_.push_back(static_cast<float>(weight / sum));
    first_.push_back(first);
    start_.push_back(static_cast<int64_t>(weights_.size()));
    low_ = std::min(low_, first);
    high_ = std::max(high_, last);
  }
}

ResampleAxis::Taps ResampleAxis::taps(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  return {first_[at],
          std::span(weights_).subspan(static_cast<size_t>(start_[at]),
                                      static_cast<size_t>(start_[at + 1] - start_[at]))};
}

void resample(std::span<const uint8_t> source, int64_t width, int64_t channels,
              const ResampleAxis& rows, const ResampleAxis& columns, std::span<float> out) {
  const int64_t row_out = columns.target() * channels;
  std::vector<float> narrow(static_cast<size_t>((rows.high() - rows.low()) * row_out), 0.0f);
  for (int64_t y = rows.low(); y < rows.high(); ++y) {
    const uint8_t* in = source.data() + y * width * channels;
    float* to = narrow.data() + (y - rows.low()) * row_out;
    for (int64_t x = 0; x < columns.target(); ++x, to += channels) {
      const ResampleAxis::Taps taps = columns.taps(x);
      const uint8_t* from = in + taps.first * channels;
      for (float weight : taps.weights) {
        for (int64_t c = 0; c < channels; ++c) to[c] += weight * static_cast<float>(*from++);
      }
    }
  }
  std::fill(out.begin(), out.end(), 0.0f);
  for (int64_t y = 0; y < rows.target(); ++y) {
    const ResampleAxis::Taps taps = rows.taps(y);
    float* to = out.data() + y * row_out;
    const float* from = narrow.data() + (taps.first - rows.low()) * row_out;
    for (float weight : taps.weights) {
      for (int64_t i = 0; i < row_out; ++i) to[i] += weight * from[i];
      from += row_out;
    }
  }
}

}  // namespace tidemark
