// The dimensions of a sum, as the kernels see them.
//
// Adjacent dimensions are merged first. For most calls, x then is (outer, summed, inner) with a
// gapless `inner`, or has a gapless `summed` and no `inner`; the general kernel handles the
// rest.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace tidemark::reduce {

struct Group {
  int64_t extent = 1;
  int64_t stride = 0;
  bool summed = false;
};

// Bit d of `dims`: dimension d is summed over. Extents of 1 are left out.
std::vector<Group> merge_groups(const TensorMeta& x, int64_t dims);

struct Groups {
  enum class Form { kRows, kColumns, kGeneral };

  // The general form leaves outer, summed and inner undefined.
  explicit Groups(const std::vector<Group>& groups);

  Form form = Form::kGeneral;
  Group outer, summed, inner;
};

}  // namespace tidemark::reduce
