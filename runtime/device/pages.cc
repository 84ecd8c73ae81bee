#include "runtime/device/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/core/errors.h"

namespace tidemark {

Bytes page_size() {
  static const Bytes size(sysconf(_SC_PAGESIZE));
  return size;
}

std::shared_ptr<std::byte> map_pages(Bytes size, const std::string& purpose) {
  TIDEMARK_CHECK(size >= Bytes(0), "memory of negative size");
  const auto mapped =
      static_cast<size_t>(std::max(align_up(size, page_size()), page_size()).count());
  void* const address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    throw DeviceError("cannot map " + format_bytes(size) + " (" + std::to_string(size.count()) +
                      " bytes)" + purpose + ": " + std::strerror(errno));
  }
  return {static_cast<std::byte*>(address),
          [mapped](std::byte* begin) { munmap(begin, mapped); }};
}

}  // namespace tidemark
