#include "tests/support/ptx/global_races.h"

#include <algorithm>

namespace tidemark::ptx {

void GlobalRaces::begin_block(int64_t block) {
  block_ = block;
  ++epoch_;
  loaded_.clear();
  acquired_.clear();
}

void GlobalRaces::fence(int thread) {
  fenced_[static_cast<size_t>(thread)] = epoch_;
  for (const Acquired& mark : loaded_) {
    if (mark.by.thread == thread) acquired_.push_back({mark.mark, now(thread)});
  }
  std::erase_if(loaded_, [&](const Acquired& mark) { return mark.by.thread == thread; });
}

bool GlobalRaces::ordered(const Access& before, int thread) const {
  const auto precedes = [](const Access& a, const Access& b) {
    return a.thread == b.thread || a.epoch < b.epoch;
  };
  if (before.block < 0) return true;
  if (before.block == block_) return precedes(before, now(thread));
  return std::any_of(acquired_.begin(), acquired_.end(), [&](const Acquired& a) {
    return a.mark.block == before.block && precedes(before, a.mark) &&
           precedes(a.by, now(thread));
  });
}

std::optional<GlobalRaces::Access> GlobalRaces::read(uint64_t address, int64_t bytes,
                                                     int thread) {
  for (int64_t i = 0; i < bytes; ++i) {
    Byte& byte = bytes_[address + static_cast<uint64_t>(i)];
    if (!ordered(byte.writer, thread)) return byte.writer;
    byte.readers.push_back(now(thread));
  }
  return std::nullopt;
}

std::optional<GlobalRaces::Access> GlobalRaces::write(uint64_t address, int64_t bytes,
                                                      int thread) {
  for (int64_t i = 0; i < bytes; ++i) {
    Byte& byte = bytes_[address + static_cast<uint64_t>(i)];
    if (!ordered(byte.writer, thread)) return byte.writer;
    for (const Access& reader : byte.readers) {
      if (!ordered(reader, thread)) return reader;
    }
    byte.writer = now(thread);
    byte.readers.clear();
  }
  return std::nullopt;
}

void GlobalRaces::store_mark(uint64_t address, int thread) {
  // Without the fence the store may be seen before what precedes it.
  if (fenced_[static_cast<size_t>(thread)] == epoch_) {
    marks_[address] = now(thread);
  } else {
    marks_.erase(address);
  }
}

void GlobalRaces::load_mark(uint64_t address, int thread) {
  const auto mark = marks_.find(address);
  if (mark != marks_.end()) loaded_.push_back({mark->second, now(thread)});
}

}  // namespace tidemark::ptx
