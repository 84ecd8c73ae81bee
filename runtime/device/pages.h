// Whole pages of host memory, as Device::adopt() takes them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/core/units.h"

namespace tidemark {

// The operating system refuses memory or a thread: a limit of the process or of the machine is
// reached. The message says how much was asked for, where that is known.
class HostMemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

Bytes page_size();

// At least `size`, and one page; taken from the system as they are touched, and zero until
// then. Throws HostMemoryError, "cannot map 1 GiB (1073741824 bytes)`purpose`: why", and
// memory_limits().
std::shared_ptr<std::byte> map_pages(Bytes size, const std::string& purpose = "");

// The limits on this process's memory, and how much of them it has taken: "; the process's
// address space is limited to 1.00 GiB (ulimit -v), of which 900.0 MiB are taken". Empty where
// there are none.
std::string memory_limits();

}  // namespace tidemark
