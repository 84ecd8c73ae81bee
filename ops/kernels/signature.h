// Helpers that operators' descriptions share: checks, output shapes, costs.
//
// Messages read "[add] shapes (2, 3) and (4) do not broadcast".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ops/registry/op.h"

namespace tidemark {

[[noreturn]] void fail(const char* op, const std::string& what);

// Throws UsageError "[op] what" unless `condition`.
inline void require(bool condition, const char* op, const char* what) {
  if (!condition) fail(op, what);
}

// Throws UsageError unless there are `count` inputs, and input `i` is of `dtype`.
void require_inputs(const OpQuery& query, const char* op, size_t count);
void require_dtype(const OpQuery& query, const char* op, size_t i, DType dtype);

// Returns the type of inputs [first, first + count). Throws UsageError unless all are float32
// or all bfloat16.
DType require_floats(const OpQuery& query, const char* op, size_t first, size_t count);

// broadcast_shapes() with the operator's name in its error message.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

// The index of dimension d; -1 is the last. Throws UsageError if d is out of range.
size_t dimension(const char* op, int64_t d, const Shape& shape);

// Bytes touched by reading or writing a view; a broadcast dimension counts once.
Bytes touched_bytes(const TensorMeta& meta);

// The cost of reading each input once, writing each output once, and doing `flops_per_element`
// operations per element of the largest tensor.
OpCost streaming_cost(const OpQuery& query, double flops_per_element);
// The same, but inputs that `op` writes count as both read and written.
OpCost updating_cost(const OpDef& op, const OpQuery& query, double flops_per_element);

// A shape as an operator's attribute.
struct ShapeAttrs {
  int64_t rank = 0;
  int64_t extents[kMaxRank] = {};

  ShapeAttrs() = default;
  explicit ShapeAttrs(const Shape& shape);
  Shape shape() const;
};

}  // namespace tidemark
