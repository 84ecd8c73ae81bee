// The types of GGUF's tensors. A row is stored in blocks: so many elements in so many bytes.
// Quantized blocks hold small integers and the scales that turn them into numbers.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark {

struct GgufType {
  uint32_t number;  // in files
  std::string_view name;
  int64_t block_elements;
  int64_t block_bytes;
  // Turns `blocks` blocks into float32: exactly for floats, for others with each operation
  // rounded to float32. Null for types that are recognised but cannot be read.
  void (*to_floats)(const uint8_t* in, size_t blocks, float* out);
};

// Of types that are read. Their blocks take at most as many bytes as their float32.
inline constexpr int64_t kMaxGgufBlockElements = 256;

// Null if there is no such type.
const GgufType* find_gguf_type(uint32_t number);

}  // namespace tidemark
