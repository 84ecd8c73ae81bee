// On CUDA, one thread handles one pixel and one vector of channels.
#pragma once

#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/launch_cuda.cuh"

namespace tidemark {

struct Pixel {
  int64_t n, row, column, channel;
};

// The pixel of thread `i`, for images of rows x columns pixels.
template <int kWidth>
__device__ Pixel pixel_at(int64_t i, int64_t rows, int64_t columns, int64_t channels) {
  const int64_t vectors = channels / kWidth;
  Pixel pixel;
  if (i <= 0x7fffffff) {  // 64-bit division is several times slower
    const auto split = [](uint32_t& rest, int64_t by) {
      const uint32_t divisor = static_cast<uint32_t>(by), quotient = rest / divisor;
      const uint32_t left = rest - quotient * divisor;
      rest = quotient;
      return int64_t{left};
    };
    uint32_t rest = static_cast<uint32_t>(i);
    pixel.channel = split(rest, vectors) * kWidth;
    pixel.column = split(rest, columns);
    pixel.row = split(rest, rows);
    pixel.n = rest;
  } else {
    pixel.channel = i % vectors * kWidth;
    i /= vectors;
    pixel.column = i % columns;
    i /= columns;
    pixel.row = i % rows;
    pixel.n = i / rows;
  }
  return pixel;
}

// Channels that one thread handles.
inline int channel_width(const OpQuery& query, int64_t channels) {
  return channels % 4 == 0 && vectors_fit(query) ? 4 : 1;
}

}  // namespace tidemark
