#include "models/checksum.h"

#include <cinttypes>
#include <cstdio>

#include "runtime/session/session.h"

namespace tidemark {

void Checksum::add(std::span<const std::byte> bytes) {
  uint64_t hash = value_;
  for (const std::byte b : bytes) {
    hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001b3;
  }
  value_ = hash;
}

std::string Checksum::hex() const {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value_);
  return text;
}

std::optional<std::string> tensors_checksum(
    std::initializer_list<std::span<const NamedTensor>> lists) {
  Session& session = Session::current();
  if (!session.device().has_data()) return std::nullopt;
  Checksum checksum;
  const auto add = [&](std::span<const std::byte> piece) { checksum.add(piece); };
  for (const std::span<const NamedTensor> list : lists) {
    for (const NamedTensor& named : list) session.download_to(add, named.tensor);
  }
  return checksum.hex();
}

}  // namespace tidemark
