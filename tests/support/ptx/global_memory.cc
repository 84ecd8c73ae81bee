#include "tests/support/ptx/global_memory.h"

#include <cstdlib>
#include <utility>

namespace tidemark::ptx {
namespace {

bool holds(const GlobalRange& range, uint64_t address, int64_t bytes) {
  return address >= range.begin &&
         static_cast<int64_t>(address - range.begin) + bytes <= range.bytes;
}

}  // namespace

void GlobalMemory::add(const void* begin, int64_t bytes, bool writable, std::string name) {
  ranges_.push_back({reinterpret_cast<uintptr_t>(begin), bytes, writable, std::move(name)});
}

std::optional<Check> GlobalMemory::check(uint64_t address, int64_t bytes, bool write) const {
  const auto allows = [&](const GlobalRange& range) {
    return holds(range, address, bytes) && (range.writable || !write);
  };
  if (last_ < ranges_.size() && allows(ranges_[last_])) return std::nullopt;
  bool read_only = false;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (allows(ranges_[i])) {
      last_ = i;
      return std::nullopt;
    }
    read_only = read_only || holds(ranges_[i], address, bytes);
  }
  return read_only ? Check::kReadOnly : Check::kGlobalBounds;
}

std::string GlobalMemory::nearest(uint64_t address) const {
  const GlobalRange* best = nullptr;
  int64_t distance = 0;
  for (const GlobalRange& range : ranges_) {
    const auto from_begin = static_cast<int64_t>(address - range.begin);
    const int64_t from_end = from_begin - range.bytes;
    const int64_t d = from_begin < 0 ? -from_begin : from_end < 0 ? 0 : from_end + 1;
    if (!best || d < distance) {
      best = &range;
      distance = d;
    }
  }
  if (!best) return "no allocation is live";
  return "byte " + std::to_string(static_cast<int64_t>(address - best->begin)) + " of " +
         best->name + ", which has " + std::to_string(best->bytes) + " bytes" +
         (best->writable ? "" : " and may only be read");
}

}  // namespace tidemark::ptx
