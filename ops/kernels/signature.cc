#include "ops/kernels/signature.h"

#include <algorithm>

namespace tidemark {

void fail(const char* op, const std::string& what) {
  throw UsageError("[" + std::string(op) + "] " + what);
}

void require_inputs(const OpQuery& query, const char* op, size_t count) {
  if (query.inputs.size() == count) return;
  fail(op, std::to_string(query.inputs.size()) + " inputs instead of " + std::to_string(count));
}

void require_dtype(const OpQuery& query, const char* op, size_t i, DType dtype) {
  const TensorMeta& input = query.inputs[i];
  if (input.dtype == dtype) return;
  fail(op, "input " + std::to_string(i) + " of shape " + input.shape.to_string() + " is " +
               std::string(to_string(input.dtype)) + ", not " + std::string(to_string(dtype)));
}

DType require_floats(const OpQuery& query, const char* op, size_t first, size_t count) {
  const TensorMeta& input = query.inputs[first];
  if (input.dtype != DType::kFloat32 && input.dtype != DType::kBFloat16) {
    fail(op, "input " + std::to_string(first) + " of shape " + input.shape.to_string() +
                 " is " + std::string(to_string(input.dtype)) + ", not float32 or bfloat16");
  }
  for (size_t i = 1; i < count; ++i) require_dtype(query, op, first + i, input.dtype);
  return input.dtype;
}

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
  try {
    return broadcast_shapes(a, b);
  } catch (const UsageError& error) {
    fail(op, error.what());
  }
}

size_t dimension(const char* op, int64_t d, const Shape& shape) {
  const int64_t rank = static_cast<int64_t>(shape.rank());
  if (d < -rank || d >= rank) {
    fail(op, "no dimension " + std::to_string(d) + " in shape " + shape.to_string());
  }
  return static_cast<size_t>(d < 0 ? d + rank : d);
}

Bytes touched_bytes(const TensorMeta& meta) {
  int64_t elements = 1;
  for (size_t i = 0; i < meta.shape.rank(); ++i) {
    if (meta.strides[i] != 0) elements *= meta.shape[i];
  }
  return size_of(meta.dtype) * elements;
}

OpCost streaming_cost(const OpQuery& query, double flops_per_element) {
  OpCost cost;
  int64_t elements = 0;
  for (const TensorMeta& input : query.inputs) {
    cost.bytes_moved += touched_bytes(input);
    elements = std::max(elements, input.shape.elements());
  }
  for (const TensorMeta& output : query.outputs) {
    cost.bytes_moved += output.bytes();
    elements = std::max(elements, output.shape.elements());
  }
  cost.flops = flops_per_element * static_cast<double>(elements);
  return cost;
}

OpCost updating_cost(const OpDef& op, const OpQuery& query, double flops_per_element) {
  OpCost cost = streaming_cost(query, flops_per_element);
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    if (op.writes(i)) cost.bytes_moved += touched_bytes(query.inputs[i]);
  }
  return cost;
}

ShapeAttrs::ShapeAttrs(const Shape& shape) : rank(static_cast<int64_t>(shape.rank())) {
  std::copy(shape.begin(), shape.end(), extents);
}

Shape ShapeAttrs::shape() const { return Shape(std::span(extents, static_cast<size_t>(rank))); }

}  // namespace tidemark
