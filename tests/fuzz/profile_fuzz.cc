// Any bytes as a device profile. A DataError within it is fine.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/device/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const tidemark::DeviceProfile profile =
        tidemark::parse_profile({reinterpret_cast<const char*>(data), size}, "input");
    if (profile.name.empty() || !(profile.float32_flops > 0)) std::abort();
  } catch (const tidemark::DataError& error) {
    if (error.offset() < -1 || error.offset() > static_cast<int64_t>(size)) std::abort();
  }
  return 0;
}
