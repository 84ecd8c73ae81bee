// Private to this folder: a batch of N rows of scores (N, C), with a label (int64) for each.
#pragma once

#include <cstdint>

#include "ops/loss/kernels.h"
#include "runtime/core/host_device.h"

namespace tidemark::loss {

struct Batch {
  Batch(int64_t class_count, const TensorMeta& labels, const CrossEntropyAttrs& cross = {})
      : rows(labels.shape[0]),
        classes(class_count),
        label_step(labels.strides[0]),
        attrs(cross) {}

  TIDEMARK_HOST_DEVICE bool valid(int64_t label) const { return label >= 0 && label < classes; }
  TIDEMARK_HOST_DEVICE bool ignored(int64_t label) const {
    return attrs.ignores && label == attrs.ignored;
  }

  int64_t rows;
  int64_t classes;
  int64_t label_step;
  CrossEntropyAttrs attrs;
};

}  // namespace tidemark::loss
