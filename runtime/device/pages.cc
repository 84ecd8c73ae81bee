#include "runtime/device/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/core/errors.h"
#include "runtime/core/process_limits.h"

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
    const std::string why = std::strerror(errno);
    throw HostMemoryError("cannot map " + format_bytes(size) + " (" +
                          std::to_string(size.count()) + " bytes)" + purpose + ": " + why +
                          memory_limits());
  }
  return {static_cast<std::byte*>(address),
          [mapped](std::byte* begin) { munmap(begin, mapped); }};
}

// Page by page: one call for many would hold the lock that all threads need to map memory, and
// a thread that others go before may hold it for seconds. The sanitizer would take it for a
// race with those who write there.
__attribute__((no_sanitize("thread"))) void touch_pages(std::byte* begin, Bytes size,
                                                        const std::atomic<bool>& stop) {
  for (Bytes done(0); done < size && !stop.load(std::memory_order_relaxed);
       done += page_size()) {
    __atomic_fetch_or(reinterpret_cast<unsigned char*>(begin) + done.count(), 0,
                      __ATOMIC_RELAXED);
  }
}

std::string memory_limits() {
  std::string note;
  for (const ProcessLimit& limit : process_limits()) {
    note += std::string("; the process's ") + limit.what + " is limited to " +
            format_bytes(limit.limit) + " (ulimit " + limit.flag + "), of which " +
            format_bytes(limit.taken) + " is in use";
  }
  return note;
}

}  // namespace tidemark
