// Files in the safetensors format (github.com/huggingface/safetensors):
//
//   | N: 8 bytes, little-endian | header: N bytes of JSON | data                     |
//                                                         ^ data_offsets count from here
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
//    "__metadata__": {"key": "text"}}
//
// Opening a file checks all of it, before it reads a tensor or allocates memory of a declared
// size: lengths against the file's size, shapes against types and offsets, names for
// duplicates. Tensors must follow one another without gaps or overlaps and fill the file.
// Errors are DataErrors that name file, tensor and offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint/weight_source.h"
#include "runtime/core/atomic_file.h"
#include "runtime/core/input_file.h"

namespace tidemark {

class SafetensorsFile final : public WeightSource {
 public:
  explicit SafetensorsFile(const std::string& path);

  // The header's JSON: bytes [8, data_begin()) of the file.
  int64_t data_begin() const { return data_begin_; }

 private:
  void read_range(const WeightEntry& entry, Bytes offset, std::span<std::byte> out) override;
  void read_halves(const WeightEntry& entry, std::span<std::byte> out);  // from here

  InputFile file_;
  int64_t data_begin_ = 0;
};

struct SafetensorsSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
};

// Writes a file tensor by tensor, atomically (atomic_file.h). Data begin at a multiple of 8.
class SafetensorsWriter {
 public:
  // Throws UsageError if a name occurs twice or is "__metadata__"; DataError if the file cannot
  // be written.
  SafetensorsWriter(const std::string& path, const std::vector<SafetensorsSpec>& tensors,
                    const WeightMetadata& metadata);

  // Appends the tensors' bytes, one tensor after another, in pieces of any size.
  void write(std::span<const std::byte> bytes);
  // REQUIRES: all bytes have been written; throws UsageError otherwise.
  void commit();

  // The bytes before the data: the length, and the JSON padded with spaces.
  const std::string& header() const { return header_; }
  AtomicFile& file() { return file_; }

 private:
  AtomicFile file_;
  std::string header_;
  int64_t expected_ = 0;  // bytes of the whole file
};

}  // namespace tidemark
