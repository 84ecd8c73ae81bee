// Any bytes as a safetensors file: opened, and all its tensors read. A DataError is fine.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "models/checkpoint/safetensors.h"
#include "runtime/core/errors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("safetensors", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (file < 0 || ftruncate(file, 0) != 0 ||
      pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  try {
    tidemark::SafetensorsFile tensors(path);
    for (const tidemark::WeightEntry& entry : tensors.entries()) {
      if (!entry.dtype) continue;
      std::vector<std::byte> values(static_cast<size_t>(entry.bytes().count()));
      tensors.read(entry, values);
    }
  } catch (const tidemark::DataError& error) {
    if (error.offset() < -1) std::abort();
  }
  return 0;
}
