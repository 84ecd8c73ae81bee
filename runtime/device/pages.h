// Whole pages of host memory, as Device::adopt() takes them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/core/units.h"

namespace tidemark {

Bytes page_size();

// At least `size`, and one page; taken from the system as they are touched, and zero until
// then. Throws DeviceError, "cannot map 1 GiB (1073741824 bytes)`purpose`: why".
std::shared_ptr<std::byte> map_pages(Bytes size, const std::string& purpose = "");

}  // namespace tidemark
