// FNV-1a over 64-bit words, for fingerprints.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <string_view>

namespace tidemark {

class WordHash {
 public:
  void add(uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3; }
  void add(std::string_view text) {
    add(text.size());
    for (const char c : text) add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace tidemark
