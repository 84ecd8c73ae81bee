// Element types. float16 has a reserved number but no kernels yet.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/bfloat16.h"
#include "runtime/core/units.h"

namespace tidemark {

enum class DType : uint8_t { kFloat32, kInt64, kInt32, kUInt8, kBool, kBFloat16, kFloat16 };

constexpr Bytes size_of(DType type) {
  switch (type) {
    case DType::kInt64: return Bytes(8);
    case DType::kFloat32:
    case DType::kInt32: return Bytes(4);
    case DType::kBFloat16:
    case DType::kFloat16: return Bytes(2);
    case DType::kUInt8:
    case DType::kBool: return Bytes(1);
  }
  return Bytes(0);
}

constexpr std::string_view to_string(DType type) {
  switch (type) {
    case DType::kFloat32: return "float32";
    case DType::kInt64: return "int64";
    case DType::kInt32: return "int32";
    case DType::kUInt8: return "uint8";
    case DType::kBool: return "bool";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat16: return "float16";
  }
  return "?";
}

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::kFloat32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::kInt64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::kInt32;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::kUInt8;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::kBool;
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return DType::kBFloat16;
}

}  // namespace tidemark
