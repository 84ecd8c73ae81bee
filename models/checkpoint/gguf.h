// Weights in the GGUF format, versions 2 and 3
// (github.com/ggml-org/ggml/blob/master/docs/gguf.md). Names and orders of rows are the file's
// own; gguf_llama.h gives those of Hugging Face.
//
// Opening checks the whole header before it reads a tensor or allocates memory of a declared
// size. Values of the metadata are read when they are asked for: vocabularies are large.
//
// Threads: one at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/checkpoint/gguf_header.h"

namespace tidemark {

class GgufFile final : public WeightSource {
 public:
  explicit GgufFile(const std::string& path);

  // Values by key. DataError, naming the key: it is missing, of another type, or out of range.
  bool has(std::string_view key) const { return values_.contains(key); }
  std::string text(std::string_view key);
  bool flag(std::string_view key);
  int64_t count(std::string_view key);  // an integer of any type, from 0 to 2^63 - 1
  double number(std::string_view key);  // a number of any type
  std::vector<std::string> texts(std::string_view key);  // arrays
  std::vector<double> numbers(std::string_view key);

  // Throws a DataError about a value.
  [[noreturn]] void fail_value(std::string_view key, const std::string& what) const;

 private:
  // Moves to the value. DataError unless it is an array, if `array`, or a single value, if not.
  const GgufValue& go_to(std::string_view key, bool array);
  double next_number(std::string_view key, GgufKind kind);
  void read_range(const WeightEntry& entry, Bytes offset, std::span<std::byte> out) override;

  GgufInput input_;
  std::map<std::string, GgufValue, std::less<>> values_;
  std::vector<const GgufType*> types_;  // of each entry
};

}  // namespace tidemark
