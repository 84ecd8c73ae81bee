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
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/core/atomic_file.h"
#include "runtime/core/dtype.h"
#include "runtime/core/input_file.h"
#include "runtime/core/shape.h"

namespace tidemark {

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string name;
  std::string type;  // as in the file: "F32", "BF16"
  // The type that read() produces: F16 and BF16 become float32. Nullopt for F64 and other types
  // that are recognised but cannot be read.
  std::optional<DType> dtype;
  Shape shape;
  int64_t begin = 0, end = 0;  // bytes [begin, end) of the file

  // Size of the tensor that read() produces. REQUIRES: dtype.
  Bytes bytes() const { return size_of(*dtype) * shape.elements(); }
};

// Reads one tensor at a time; keeps only the header in memory.
// Threads: one at a time.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const SafetensorsMetadata& metadata() const { return metadata_; }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  // file order
  const SafetensorsEntry* find(std::string_view name) const;
  // The header's JSON: bytes [8, data_begin()) of the file.
  int64_t data_begin() const { return data_begin_; }

  // Also throws DataError for a bool that is neither 0 nor 1, and for unsupported types.
  // REQUIRES: `entry` belongs to this file; out.size() == entry.bytes().
  void read(const SafetensorsEntry& entry, std::span<std::byte> out);
  // Reads only bytes [offset, offset + out.size()) of the result. REQUIRES: whole elements.
  void read(const SafetensorsEntry& entry, Bytes offset, std::span<std::byte> out);

  // Throws a DataError about a tensor; the message begins with the tensor's name.
  [[noreturn]] void fail(const SafetensorsEntry& entry, const std::string& what) const;

 private:
  void read_halves(const SafetensorsEntry& entry, std::span<std::byte> out);  // from here

  InputFile file_;
  int64_t data_begin_ = 0;
  SafetensorsMetadata metadata_;
  std::vector<SafetensorsEntry> entries_;
  std::unordered_map<std::string_view, size_t> by_name_;  // the keys point into entries_
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
                    const SafetensorsMetadata& metadata);

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

// IEEE 754 binary16 and bfloat16 to float32; exact, NaNs keep their payload.
float half_to_float(uint16_t bits);
float bfloat16_to_float(uint16_t bits);

}  // namespace tidemark
