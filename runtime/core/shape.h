// The extents of a tensor, outermost first, at most kMaxRank of them; held inline.
//
// Images are (N, H, W, C) and convolution weights (K, R, S, C / groups): the layout in which
// oneDNN and cuDNN are fast, so no operator reorders activations and every block is row-major.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "runtime/core/errors.h"

namespace tidemark {

inline constexpr size_t kMaxRank = 6;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents)
      : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const int64_t> extents) : rank_(extents.size()) {
    if (extents.size() > kMaxRank) throw UsageError("a shape has at most 6 dimensions");
    for (size_t i = 0; i < rank_; ++i) extents_[i] = extents[i];
  }

  size_t rank() const { return rank_; }
  int64_t operator[](size_t i) const { return extents_[i]; }
  int64_t& operator[](size_t i) { return extents_[i]; }
  int64_t back() const { return extents_[rank_ - 1]; }
  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return extents_.data() + rank_; }
  void push_back(int64_t extent) {
    if (rank_ == kMaxRank) throw UsageError("a shape has at most 6 dimensions");
    extents_[rank_++] = extent;
  }

  // Product of the extents; 1 for a scalar.
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t extent : *this) n *= extent;
    return n;
  }
  bool operator==(const Shape& other) const {
    return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
  }
  std::string to_string() const;  // "(8, 224, 224, 3)"

 private:
  size_t rank_ = 0;
  std::array<int64_t, kMaxRank> extents_{};
};

// Row-major strides, in elements.
Shape contiguous_strides(const Shape& shape);

// The shape that both broadcast to (NumPy's rule). Throws UsageError naming both.
Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace tidemark
