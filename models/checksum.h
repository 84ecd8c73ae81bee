// One checksum over the exact bytes of tensors. Equal bits give equal checksums; in practice,
// different bits give different ones.
//
// FNV-1a, 64 bits, over the bytes in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "models/nn/module.h"

namespace tidemark {

class Checksum {
 public:
  void add(std::span<const std::byte> bytes);
  uint64_t value() const { return value_; }
  std::string hex() const;  // 16 digits

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

// The checksum of the values of all tensors in all lists, in order; names do not count. Waits
// for the values. Nullopt on devices without data. Threads: the session's issuing thread.
std::optional<std::string> tensors_checksum(
    std::initializer_list<std::span<const NamedTensor>> lists);

}  // namespace tidemark
