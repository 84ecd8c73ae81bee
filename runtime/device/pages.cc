#include "runtime/device/pages.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/core/process_limits.h"

namespace tidemark {

Bytes page_size() {
  static const Bytes size(sysconf(_SC_PAGESIZE));
  return size;
}

namespace {

constexpr Bytes kHugePage{2 << 20};

// Maps `mapped` bytes, for `size` of use.
std::byte* map_or_throw(size_t mapped, Bytes size, const std::string& purpose) {
  void* const address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    const std::string why = std::strerror(errno);
    throw HostMemoryError("cannot map " + format_bytes(size) + " (" +
                          std::to_string(size.count()) + " bytes)" + purpose + ": " + why +
                          memory_limits());
  }
  return static_cast<std::byte*>(address);
}

size_t in_whole_pages(Bytes size) {
  TIDEMARK_CHECK(size >= Bytes(0), "memory of negative size");
  return static_cast<size_t>(std::max(align_up(size, page_size()), page_size()).count());
}

// The nodes that mbind() takes, as the bits of a word.
constexpr int kNodes = 64;

}  // namespace

std::shared_ptr<std::byte> map_pages(Bytes size, const std::string& purpose) {
  const size_t mapped = in_whole_pages(size);
  return {map_or_throw(mapped, size, purpose),
          [mapped](std::byte* begin) { munmap(begin, mapped); }};
}

std::shared_ptr<std::byte> map_huge_pages(Bytes size, int node, const std::string& purpose) {
  if (size < kHugePage) return map_pages(size, purpose);
  const size_t used = in_whole_pages(size);
  const auto huge = static_cast<size_t>(kHugePage.count());
  std::byte* const whole = map_or_throw(used + huge, size, purpose);
  const size_t before = (huge - reinterpret_cast<uintptr_t>(whole) % huge) % huge;
  std::byte* const begin = whole + before;
  if (before > 0) munmap(whole, before);
  munmap(begin + used, huge - before);
  if (madvise(begin, used, MADV_HUGEPAGE) != 0) {
    log().debug("no huge pages{}: {}", purpose, std::strerror(errno));
  }
  if (node >= 0 && node < kNodes) {
    const auto nodes = uint64_t{1} << node;
    if (syscall(SYS_mbind, begin, used, MPOL_PREFERRED, &nodes, kNodes + 1, 0) != 0) {
      log().debug("no pages of NUMA node {}{}: {}", node, purpose, std::strerror(errno));
    }
  }
  return {begin, [used](std::byte* address) { munmap(address, used); }};
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
