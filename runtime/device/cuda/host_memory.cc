#include "runtime/device/cuda/host_memory.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/device/pages.h"

namespace tidemark {

HostMemory::HostMemory(std::shared_ptr<CudaDriver> driver, std::string device_name,
                       std::shared_ptr<std::byte> memory, Bytes size, Bytes chunk)
    : driver_(std::move(driver)),
      device_name_(std::move(device_name)),
      memory_(std::move(memory)),
      size_(size),
      chunk_(chunk),
      whole_(align_up(size, page_size())) {
  const Bytes page = page_size();
  TIDEMARK_CHECK(size >= Bytes(0), "a region of negative size");
  TIDEMARK_CHECK(chunk > Bytes(0) && align_down(chunk, page) == chunk,
                 "chunks are whole pages");
  TIDEMARK_CHECK(
      reinterpret_cast<uintptr_t>(data()) % static_cast<uintptr_t>(page.count()) == 0,
      "memory to be pinned begins on a page");
  const int64_t chunks = (whole_.count() + chunk_.count() - 1) / chunk_.count();
  chunks_.resize(static_cast<size_t>(chunks), Chunk::kUntouched);
}

HostMemory::~HostMemory() {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i] == Chunk::kPinned) (void)driver_->unpin(start_of(i));
  }
}

std::byte* HostMemory::start_of(size_t index) const {
  return data() + static_cast<int64_t>(index) * chunk_.count();
}

Bytes HostMemory::bytes_of(size_t index) const {
  return std::min(chunk_, Bytes(data() + whole_.count() - start_of(index)));
}

HostMemory::Chunk HostMemory::pin(size_t index) {
  const Bytes bytes = bytes_of(index);
  const DriverStatus status = driver_->pin(start_of(index), static_cast<size_t>(bytes.count()));
  if (status.ok()) {
    pinned_ += bytes;
    return Chunk::kPinned;
  }
  if (refused_ == Bytes(0)) {
    log().warn(
        "{}: cannot pin {} of host memory ({} of {} pinned so far): {}. Copies of unpinned "
        "memory are slower; raise ulimit -l, or lower the host limit or the batch size",
        device_name_, format_bytes(bytes), format_bytes(pinned_), format_bytes(size_),
        driver_->describe(status));
  }
  refused_ += bytes;
  return Chunk::kPageable;
}

HostMemory::Chunk HostMemory::reach(size_t index) {
  if (chunks_[index] == Chunk::kUntouched) chunks_[index] = pin(index);
  return chunks_[index];
}

HostMemory::Piece HostMemory::piece_at(const std::byte* address) {
  TIDEMARK_CHECK(contains(address), "an address of another region");
  const auto index = static_cast<size_t>((address - data()) / chunk_.count());
  const bool pinned = reach(index) == Chunk::kPinned;
  return {Bytes(start_of(index) + bytes_of(index).count() - address), pinned};
}

void HostMemory::prepare(Bytes begin, Bytes bytes) {
  TIDEMARK_CHECK(begin >= Bytes(0) && bytes >= Bytes(0) && begin <= size_ - bytes,
                 "a range of another region");
  if (bytes == Bytes(0)) return;
  const int64_t first = begin.count() / chunk_.count();
  const int64_t last = ((begin + bytes).count() - 1) / chunk_.count();
  for (int64_t index = first; index <= last; ++index) reach(static_cast<size_t>(index));
}

}  // namespace tidemark
