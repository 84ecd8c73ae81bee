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
  int64_t starts = 0;  // 1: the last input is AttentionOptions::starts

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

// Workspace of CUDA's backward kernels with `starts`: a number for each tile of 64 keys.
inline Bytes query_ends_bytes(const Extents& extents) {
  return size_of(DType::kInt32) * (extents.batch * ((extents.keys + 63) / 64));
}

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

// The optional input that says which key each query sees first.
struct QueryStarts {
  const int32_t* data = nullptr;  // null: all see key 0
  int64_t step[2] = {0, 0};       // in elements

  QueryStarts() = default;
  explicit QueryStarts(const TensorMeta& meta) : step{meta.strides[0], meta.strides[1]} {}

  // REQUIRES: data.
  TIDEMARK_HOST_DEVICE int32_t of(int64_t b, int64_t query) const {
    const int32_t start = data[b * step[0] + query * step[1]];
    return start < 0 ? 0 : start;
  }
};

// Where a call's optional inputs are; 0: absent.
struct OptionalInputs {
  // `at`: where the first is, if there are any.
  OptionalInputs(const OpQuery& query, size_t at)
      : starts(query.attr<AttentionAttrs>().starts ? query.inputs.size() - 1 : 0),
        keys(query.inputs.size() > at + (starts ? 1 : 0) ? at : 0) {}
  size_t starts, keys;

  KeyFilter filter(const OpQuery& query) const {
    return keys ? KeyFilter(query.inputs[keys]) : KeyFilter();
  }
  QueryStarts first_keys(const OpQuery& query) const {
    return starts ? QueryStarts(query.inputs[starts]) : QueryStarts();
  }
};

PreparedKernel prepare_attention_cpu(const OpQuery& query);
PreparedKernel prepare_attention_grad_cpu(const OpQuery& query);

}  // namespace tidemark::attention
