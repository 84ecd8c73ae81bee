#include "runtime/device/device.h"

#include <cstdint>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/device/pages.h"

namespace tidemark {
namespace {

// For devices to which all host memory is alike: nothing is pinned.
class AdoptedRegion final : public MemoryRegion {
 public:
  AdoptedRegion(std::shared_ptr<std::byte> memory, Bytes size)
      : memory_(std::move(memory)), size_(size) {
    TIDEMARK_CHECK(size >= Bytes(0), "a region of negative size");
    TIDEMARK_CHECK(
        reinterpret_cast<uintptr_t>(data()) % static_cast<uintptr_t>(page_size().count()) == 0,
        "adopted memory begins on a page");
  }
  std::byte* data() const override { return memory_.get(); }
  Bytes size() const override { return size_; }

 private:
  const std::shared_ptr<std::byte> memory_;
  const Bytes size_;
};

}  // namespace

std::unique_ptr<MemoryRegion> Device::adopt(std::shared_ptr<std::byte> memory, Bytes size) {
  return std::make_unique<AdoptedRegion>(std::move(memory), size);
}

}  // namespace tidemark
