#include "examples/common/process_memory.h"

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace tidemark {

std::optional<Bytes> peak_resident_memory() {
  std::ifstream status("/proc/self/status");
  std::string key;
  while (status >> key) {
    int64_t kib = 0;
    if (key == "VmHWM:" && status >> kib) return Bytes(kib * 1024);
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

}  // namespace tidemark
