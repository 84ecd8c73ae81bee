// Turns a run-time element type into a compile-time type.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/core/dtype.h"
#include "runtime/core/errors.h"

namespace tidemark {

template <class T>
struct TypeTag {
  using Type = T;
};

// Calls visit(TypeTag<T>()), T the C++ type of `dtype`: float, int64_t, int32_t, uint8_t, bool
// or BFloat16.
template <class Visitor>
auto visit_dtype(DType dtype, const Visitor& visit) {
  switch (dtype) {
    case DType::kFloat32: return visit(TypeTag<float>());
    case DType::kInt64: return visit(TypeTag<int64_t>());
    case DType::kInt32: return visit(TypeTag<int32_t>());
    case DType::kUInt8: return visit(TypeTag<uint8_t>());
    case DType::kBool: return visit(TypeTag<bool>());
    case DType::kBFloat16: return visit(TypeTag<BFloat16>());
    default: break;
  }
  throw UsageError("no kernels for " + std::string(to_string(dtype)));
}

// The same for kernels that compute in float: T, the stored type, is float or BFloat16.
template <class Visitor>
auto visit_float(DType dtype, const Visitor& visit) {
  if (dtype == DType::kBFloat16) return visit(TypeTag<BFloat16>());
  if (dtype == DType::kFloat32) return visit(TypeTag<float>());
  throw UsageError("no kernels for " + std::string(to_string(dtype)));
}

// The same for kernels that only move bytes: T is an unsigned integer of that size.
template <class Visitor>
auto visit_size(DType dtype, const Visitor& visit) {
  switch (size_of(dtype).count()) {
    case 8: return visit(TypeTag<uint64_t>());
    case 4: return visit(TypeTag<uint32_t>());
    case 2: return visit(TypeTag<uint16_t>());
    default: return visit(TypeTag<uint8_t>());
  }
}

}  // namespace tidemark
