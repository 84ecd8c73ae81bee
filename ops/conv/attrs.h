// Attributes of convolutions over images (two spatial dimensions) and clips (three).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidemark {

template <size_t n>
constexpr std::array<int64_t, n> ones_of() {
  std::array<int64_t, n> values{};
  for (int64_t& value : values) value = 1;
  return values;
}

// One value per spatial dimension, outermost first.
template <size_t n>
struct ConvAttrs {
  std::array<int64_t, n> stride = ones_of<n>();
  std::array<int64_t, n> padding{};
  std::array<int64_t, n> dilation = ones_of<n>();
  int64_t groups = 1;
};

template <size_t n>
struct ConvGradInputAttrs {
  ConvAttrs<n> conv;
  std::array<int64_t, n> extents{};  // of x
};

template <size_t n>
struct ConvGradWeightAttrs {
  ConvAttrs<n> conv;
  std::array<int64_t, n> extents{};  // of w
  int64_t bias = 0;                  // 1: compute the gradient of bias too
};

}  // namespace tidemark
