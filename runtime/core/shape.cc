#include "runtime/core/shape.h"

#include <algorithm>

namespace tidemark {

std::string Shape::to_string() const {
  std::string text = "(";
  for (size_t i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string(extents_[i]);
  return text + ")";
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  int64_t step = 1;
  for (size_t i = shape.rank(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  const size_t lead = longer.rank() - shorter.rank();
  for (size_t i = 0; i < shorter.rank(); ++i) {
    int64_t& extent = result[lead + i];
    if (shorter[i] == extent || shorter[i] == 1) continue;
    if (extent != 1) {
      throw UsageError("shapes " + a.to_string() + " and " + b.to_string() +
                       " do not broadcast");
    }
    extent = shorter[i];
  }
  return result;
}

}  // namespace tidemark
