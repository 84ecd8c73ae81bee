// Named tensors in files, read one at a time: what loading needs of a format. A source is one
// safetensors file, the shards of an index, or a GGUF file; open_weights() (weight_file.h)
// chooses.
//
// Opening checks names, types, shapes and places of all tensors. Only these are kept in memory.
// Errors are DataErrors that name file, tensor and offset.
//
// Threads: one at a time.
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

#include "runtime/core/dtype.h"
#include "runtime/core/shape.h"

namespace tidemark {

using WeightMetadata = std::map<std::string, std::string>;

struct WeightEntry {
  std::string name;
  std::string type;  // as in the file: "F32", "BF16", "Q4_K"
  // The type that read() produces: all floats become float32, except F64. Nullopt for types
  // that are recognised but cannot be read.
  std::optional<DType> dtype;
  Shape shape;
  int64_t begin = 0, end = 0;  // bytes [begin, end) of its file

  // Size of the tensor that read() produces. REQUIRES: dtype.
  Bytes bytes() const { return size_of(*dtype) * shape.elements(); }
};

class WeightSource {
 public:
  WeightSource(const WeightSource&) = delete;
  WeightSource& operator=(const WeightSource&) = delete;
  virtual ~WeightSource() = default;

  const std::string& path() const { return path_; }
  const WeightMetadata& metadata() const { return metadata_; }
  const std::vector<WeightEntry>& entries() const { return entries_; }  // file order
  const WeightEntry* find(std::string_view name) const;

  // Throws DataError for values that the type does not have, and for types without a dtype.
  // REQUIRES: `entry` belongs to this source; out.size() == entry.bytes().
  void read(const WeightEntry& entry, std::span<std::byte> out);
  // Reads only bytes [offset, offset + out.size()) of the result. REQUIRES: whole elements.
  void read(const WeightEntry& entry, Bytes offset, std::span<std::byte> out);

  // Throws a DataError about a tensor; the message begins with the tensor's name.
  [[noreturn]] void fail(const WeightEntry& entry, const std::string& what) const;

 protected:
  explicit WeightSource(std::string path) : path_(std::move(path)) {}
  WeightSource(WeightSource&&) = default;
  WeightSource& operator=(WeightSource&&) = default;

  void set_metadata(WeightMetadata metadata) { metadata_ = std::move(metadata); }
  // REQUIRES: no name occurs twice.
  void set_entries(std::vector<WeightEntry> entries);
  // Where `entry` is in entries(). REQUIRES: it belongs to this source.
  size_t index_of(const WeightEntry& entry) const;

 private:
  // read(), after its checks.
  virtual void read_range(const WeightEntry& entry, Bytes offset, std::span<std::byte> out) = 0;
  virtual const std::string& file_of(const WeightEntry&) const { return path_; }

  std::string path_;
  WeightMetadata metadata_;
  std::vector<WeightEntry> entries_;
  std::unordered_map<std::string_view, size_t> by_name_;  // the keys point into entries_
};

// 'name' as messages show names that files give: cut, without control characters.
std::string quoted_name(std::string_view name);

}  // namespace tidemark
