// Whole pages of host memory, as Device::adopt() takes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/core/units.h"

namespace tidemark {

// The operating system refused memory or a thread, because a limit of the process or the
// machine is reached. The message states the amount requested, if known.
class HostMemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

Bytes page_size();

// Maps at least `size` bytes, and at least one page. Pages are taken when touched, and are zero
// until then. Throws HostMemoryError: "cannot map 1 GiB (1073741824 bytes)`purpose`: why",
// followed by memory_limits().
std::shared_ptr<std::byte> map_pages(Bytes size, const std::string& purpose = "");

// The same, beginning on a huge page, of huge pages of a NUMA node (-1: of any node). Both are
// preferences: if the system refuses them or has none left, the pages are ordinary ones.
std::shared_ptr<std::byte> map_huge_pages(Bytes size, int node,
                                          const std::string& purpose = "");

// Takes the pages of [begin, begin + size), which begins on a page, now rather than when they
// are first written, until `stop`. What they hold stays, also if others write it meanwhile.
// Threads: any.
void touch_pages(std::byte* begin, Bytes size, const std::atomic<bool>& stop);

// The limits on this process's memory and their use: "; the process's address space is limited
// to 1.00 GiB (ulimit -v), of which 900.0 MiB are taken". Empty if there are no limits.
std::string memory_limits();

}  // namespace tidemark
