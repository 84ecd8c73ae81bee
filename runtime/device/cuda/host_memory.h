// Host memory that the GPU copies at full speed: available at once, pinned chunk by chunk.
//
// Pinning costs about as much as touching every page. A chunk is therefore pinned when it is
// prepared or first copied, and a large limit costs nothing until used. A chunk that the system
// refuses to pin stays pageable: copies of it use a small pinned buffer. The first refusal is
// logged.
//
// Threads: the issuing thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/device/cuda/driver.h"

namespace tidemark {

class HostMemory {
 public:
  // Keeps `memory` alive and pins its whole pages; the last may be partial. `chunk`: whole
  // pages.
  HostMemory(std::shared_ptr<CudaDriver> driver, std::string device_name,
             std::shared_ptr<std::byte> memory, Bytes size, Bytes chunk);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::byte* data() const { return memory_.get(); }
  Bytes size() const { return size_; }
  bool contains(const std::byte* address) const {
    return address >= data() && address < data() + size_.count();
  }

  // The bytes from an address on that one copy may take: within one chunk, as CUDA refuses
  // copies that straddle two pinned ranges.
  struct Piece {
    Bytes bytes{0};
    bool pinned = false;
  };
  // REQUIRES: contains(address). Pins the chunk on first use.
  Piece piece_at(const std::byte* address);

  // Pins the chunks of [begin, begin + bytes) that have not been tried yet.
  void prepare(Bytes begin, Bytes bytes);

  Bytes pinned() const { return pinned_; }
  Bytes refused() const { return refused_; }

 private:
  enum class Chunk : uint8_t { kUntouched, kPinned, kPageable };
  Chunk reach(size_t index);  // pins it on first use
  Chunk pin(size_t index);
  std::byte* start_of(size_t index) const;
  Bytes bytes_of(size_t index) const;

  const std::shared_ptr<CudaDriver> driver_;
  const std::string device_name_;
  const std::shared_ptr<std::byte> memory_;
  const Bytes size_;
  const Bytes chunk_;
  Bytes whole_{0};  // in whole pages
  std::vector<Chunk> chunks_;
  Bytes pinned_{0};
  Bytes refused_{0};
};

}  // namespace tidemark
