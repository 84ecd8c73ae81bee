// Resizing with a triangle filter: bilinear when enlarging, and widened when shrinking, so that
// every source pixel counts and nothing aliases (as Pillow and torchvision's antialias do).
//
// Separable: each axis has one table of weights, made once and used for any number of images.
// Threads: tables are immutable; resample() allocates its own scratch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tidemark {

// Owns its 8-bit pixels; channels last.
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

// The weights that turn [begin, begin + extent) of an axis of `source` pixels into `target`
// pixels.
class ResampleAxis {
 public:
  // REQUIRES: 0 <= begin, extent > 0, begin + extent <= source, target > 0. `mirror` reverses
  // the result.
  ResampleAxis(int64_t source, double begin, double extent, int64_t target,
               bool mirror = false);

  struct Taps {
    int64_t first;  // source index of weights[0]
    std::span<const float> weights;
  };
  int64_t target() const { return static_cast<int64_t>(first_.size()); }
  Taps taps(int64_t i) const;
  int64_t low() const { return low_; }  // source indices used: [low, high)
  int64_t high() const { return high_; }

 private:
  std::vector<int64_t> first_;
  std::vector<int64_t> start_;  // offsets into weights_; one more than targets
  std::vector<float> weights_;
  int64_t low_ = 0, high_ = 0;
};

// source (H, W, C) bytes -> out (rows.target(), columns.target(), C), values still in 0..255.
// Scratch: 4 * (rows.high() - rows.low()) * columns.target() * C bytes.
void resample(std::span<const uint8_t> source, int64_t width, int64_t channels,
              const ResampleAxis& rows, const ResampleAxis& columns, std::span<float> out);

}  // namespace tidemark
