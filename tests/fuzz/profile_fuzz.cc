// Any bytes as a device profile. A DataError within it is fine.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/device/profile.h"
#include "tests/fuzz/within_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  allow_errors_within(size, [&] {
    const tidemark::DeviceProfile profile =
        tidemark::parse_profile({reinterpret_cast<const char*>(data), size}, "input");
    if (profile.name.empty() || !(profile.float32_flops > 0)) std::abort();
  });
  return 0;
}
