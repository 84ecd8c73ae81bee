// Numbers and text in a GGUF file, each checked against the file's size before it is read.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "runtime/core/input_file.h"

namespace tidemark {

// The types of values, by their numbers in files.
enum class GgufKind : uint32_t {
  kUInt8,
  kInt8,
  kUInt16,
  kInt16,
  kUInt32,
  kInt32,
  kFloat32,
  kBool,
  kText,
  kArray,
  kUInt64,
  kInt64,
  kFloat64
};

// Bytes of a value; 0 for text and arrays.
uint64_t size_of(GgufKind kind);

// Reads a file's numbers and texts. Throws a DataError if they lie beyond its end; `about`,
// "key 'x': ", is the beginning of its message.
class GgufInput {
 public:
  explicit GgufInput(const std::string& path) : file_(path) {}

  InputFile& file() { return file_; }
  const InputFile& file() const { return file_; }
  uint64_t rest() const { return static_cast<uint64_t>(file_.size() - file_.position()); }
  void set_about(std::string about) { about_ = std::move(about); }

  template <class T>
  T number() {
    need(1, sizeof(T));
    T value{};
    file_.read_exact({reinterpret_cast<uint8_t*>(&value), sizeof(value)});
    return value;
  }
  // DataError if it is longer than `most` bytes.
  std::string text(uint64_t most = std::numeric_limits<uint64_t>::max());
  GgufKind kind();
  // Passes over `count` things of `size` bytes each.
  void skip(uint64_t count, uint64_t size);
  // Fails unless `count` things of at least `size` bytes each fit into the rest of the file.
  void need(uint64_t count, uint64_t size) const;
  // A DataError about the current position.
  [[noreturn]] void fail(const std::string& what) const { file_.fail(about_ + what); }

 private:
  InputFile file_;
  std::string about_;
};

}  // namespace tidemark
