// Kernels and attributes of attention, and the parts of a signature that all kernels use.
#pragma once

#include <cstdint>

#include "ops/attention/attention.h"
#include "ops/attention/dropout.h"
#include "ops/attention/rows.h"
#include "ops/registry/op.h"

namespace tidemark::attention {

struct AttentionAttrs {
  int64_t implementation;
  int64_t causal;
  double dropout;
  double scale;
  int64_t seed;

  bool materialised() const {
    return implementation == static_cast<int64_t>(AttentionImplementation::kMaterialised);
  }
};

struct Extents {
  int64_t batch, heads, queries, keys, depth;  // heads: of the queries

  Extents(const TensorMeta& q, const TensorMeta& k)
      : batch(q.shape[0]),
        heads(q.shape[2]),
        queries(q.shape[1]),
        keys(k.shape[1]),
        depth(q.shape[3]) {}
  TIDEMARK_HOST_DEVICE int64_t all_heads() const { return batch * heads; }
};

// Gradients of keys and values, one for each of the queries' heads.
inline TensorMeta key_gradients(const TensorMeta& q, const TensorMeta& k) {
  return TensorMeta::contiguous(q.dtype, {k.shape[0], k.shape[1], q.shape[2], k.shape[3]});
}

// The optional input that says which keys exist.
struct KeyFilter {
  enum class Kind { kAll, kLengths, kMask };
  Kind kind = Kind::kAll;
  int64_t bytes = 0;         // of one element
  int64_t step[2] = {0, 0};  // in elements

  KeyFilter() = default;
  explicit KeyFilter(const TensorMeta& meta)
      : kind(meta.shape.rank() == 1 ? Kind::kLengths : Kind::kMask),
        bytes(size_of(meta.dtype).count()),
        step{meta.strides[0], meta.shape.rank() == 1 ? 0 : meta.strides[1]} {}

  TIDEMARK_HOST_DEVICE int64_t value(const void* data, int64_t at) const {
    if (bytes == 8) return static_cast<const int64_t*>(data)[at];
    if (bytes == 4) return static_cast<const int32_t*>(data)[at];
    return static_cast<const uint8_t*>(data)[at];
  }
  TIDEMARK_HOST_DEVICE bool keeps(const void* data, int64_t b, int64_t key) const {
    if (kind == Kind::kAll) return true;
    if (kind == Kind::kLengths) return key < value(data, b * step[0]);
    return value(data, b * step[0] + key * step[1]) != 0;
  }
};

PreparedKernel prepare_attention_cpu(const OpQuery& query);
PreparedKernel prepare_attention_grad_cpu(const OpQuery& query);

}  // namespace tidemark::attention
