#include "examples/common/process_memory.h"

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace tidemark {
namespace {

// Of a line "NAME: NUMBER kB".
std::optional<Bytes> read_kib(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string key;
  while (file >> key) {
    int64_t kib = 0;
    if (key == name && file >> kib) return Bytes(kib * 1024);
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

}  // namespace

std::optional<Bytes> peak_resident_memory() { return read_kib("/proc/self/status", "VmHWM:"); }

std::optional<Bytes> resident_memory() { return read_kib("/proc/self/status", "VmRSS:"); }

std::optional<Bytes> machine_memory() {
  const std::optional<Bytes> memory = read_kib("/proc/meminfo", "MemTotal:");
  if (!memory) return std::nullopt;
  return *memory + read_kib("/proc/meminfo", "SwapTotal:").value_or(Bytes(0));
}

std::optional<Bytes> available_memory() { return read_kib("/proc/meminfo", "MemAvailable:"); }

}  // namespace tidemark
