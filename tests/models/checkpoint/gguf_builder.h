// GGUF files, right and wrong ones, byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "models/checkpoint/gguf_input.h"
#include "tests/models/data/files.h"

namespace tidemark::testing {

template <class T>
void append(ByteVector& bytes, T number) {
  const auto* first = reinterpret_cast<const uint8_t*>(&number);
  bytes.insert(bytes.end(), first, first + sizeof(number));
}
inline void append_text(ByteVector& bytes, std::string_view text) {
  append<uint64_t>(bytes, text.size());
  bytes.insert(bytes.end(), text.begin(), text.end());
}

struct GgufBuilder {
  uint32_t version = 3;
  uint64_t value_count = 0, tensor_count = 0;  // as declared; counted up below
  ByteVector values{}, tensors{}, data{};
  uint64_t alignment = 32;

  GgufBuilder& value(const std::string& key, GgufKind kind, const ByteVector& bytes) {
    append_text(values, key);
    append(values, kind);
    values.insert(values.end(), bytes.begin(), bytes.end());
    ++value_count;
    return *this;
  }
  template <class T>
  GgufBuilder& number(const std::string& key, GgufKind kind, T number) {
    ByteVector bytes;
    append(bytes, number);
    return value(key, kind, bytes);
  }
  GgufBuilder& size(const std::string& key, uint32_t size) {
    return number(key, GgufKind::kUInt32, size);
  }
  GgufBuilder& text(const std::string& key, const std::string& text) {
    ByteVector bytes;
    append_text(bytes, text);
    return value(key, GgufKind::kText, bytes);
  }
  // `extents` innermost first.
  GgufBuilder& tensor(const std::string& name, const std::vector<uint64_t>& extents,
                      uint32_t type, uint64_t offset) {
    append_text(tensors, name);
    append(tensors, static_cast<uint32_t>(extents.size()));
    for (const uint64_t extent : extents) append(tensors, extent);
    append(tensors, type);
    append(tensors, offset);
    ++tensor_count;
    return *this;
  }
  // F32 zeros behind the tensors before it.
  GgufBuilder& zeros(const std::string& name, const std::vector<uint64_t>& extents) {
    tensor(name, extents, 0, data.size());
    uint64_t bytes = sizeof(float);
    for (const uint64_t extent : extents) bytes *= extent;
    data.resize(data.size() + (bytes + alignment - 1) / alignment * alignment);
    return *this;
  }

  ByteVector bytes() const {
    ByteVector all{'G', 'G', 'U', 'F'};
    append(all, version);
    append(all, tensor_count);
    append(all, value_count);
    all.insert(all.end(), values.begin(), values.end());
    all.insert(all.end(), tensors.begin(), tensors.end());
    all.resize((all.size() + alignment - 1) / alignment * alignment);
    all.insert(all.end(), data.begin(), data.end());
    return all;
  }
};

}  // namespace tidemark::testing
