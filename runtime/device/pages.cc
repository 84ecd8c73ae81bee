#include "runtime/device/pages.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

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
    const std::string why = std::strerror(errno);
    throw HostMemoryError("cannot map " + format_bytes(size) + " (" +
                          std::to_string(size.count()) + " bytes)" + purpose + ": " + why +
                          memory_limits());
  }
  return {static_cast<std::byte*>(address),
          [mapped](std::byte* begin) { munmap(begin, mapped); }};
}

std::string memory_limits() {
  // In pages (proc(5)): all of the address space, and its private writable part.
  int64_t space = 0, resident = 0, shared = 0, text = 0, unused = 0, data = 0;
  std::ifstream("/proc/self/statm") >> space >> resident >> shared >> text >> unused >> data;
  std::string note;
  const auto add = [&](auto resource, const char* what, const char* flag, int64_t pages) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    note += std::string("; the ") + what + " limited to " +
            format_bytes(Bytes(static_cast<int64_t>(limit.rlim_cur))) + " (ulimit " + flag +
            "), of which " + format_bytes(pages * page_size()) + " are taken";
  };
  add(RLIMIT_AS, "address space is", "-v", space);
  add(RLIMIT_DATA, "process's private memory is", "-d", data);
  return note;
}

}  // namespace tidemark
