// A file in memory that fails on demand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include "runtime/memory/disk_file.h"

namespace tidemark {

class FaultyFile final : public DiskFile {
 public:
  Bytes room{1 << 30};  // of the disk
  // Asked before every transfer: 0 to go on, else the errno to fail with.
  std::function<int()> fault = [] { return 0; };
  size_t most_at_once = SIZE_MAX;  // longer transfers are cut short

  std::vector<Offset> allocations;  // ends asked for
  size_t transfers = 0;

  bool allocate(Offset begin, Offset end) override {
    EXPECT_EQ(begin.value(), static_cast<int64_t>(data_.size()));
    allocations.push_back(end);
    if (end - Offset(0) > room) return false;
    data_.resize(static_cast<size_t>(end.value()));
    return true;
  }
  ssize_t write(const std::byte* from, size_t bytes, Offset at) override {
    const ssize_t n = begin(from, bytes, at);
    if (n > 0) std::memcpy(data_.data() + at.value(), from, static_cast<size_t>(n));
    return n;
  }
  ssize_t read(std::byte* to, size_t bytes, Offset at) override {
    const ssize_t n = begin(to, bytes, at);
    if (n > 0) std::memcpy(to, data_.data() + at.value(), static_cast<size_t>(n));
    return n;
  }

 private:
  ssize_t begin(const std::byte* memory, size_t bytes, Offset at) {
    ++transfers;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0U);
    EXPECT_EQ(bytes % 4096, 0U);
    EXPECT_EQ(at.value() % 4096, 0);
    if (const int error = fault()) {
      errno = error;
      return -1;
    }
    const size_t end = data_.size();
    const size_t place = std::min(end, static_cast<size_t>(at.value()));
    return static_cast<ssize_t>(std::min({bytes, most_at_once, end - place}));
  }

  std::vector<std::byte> data_;
};

}  // namespace tidemark
