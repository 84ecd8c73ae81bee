// Which addresses of global memory a kernel may use. Device addresses are the host's.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/ptx/kernel.h"
#include "tests/support/ptx/violation.h"

namespace tidemark::ptx {

class GlobalMemory {
 public:
  // Ranges may overlap, as an output may lie in an input's memory; an access is allowed if one
  // of them allows it.
  void add(const void* begin, int64_t bytes, bool writable, std::string name);

  // Launches look for races in it (global_races.h), which takes time and memory for each byte.
  void watch_races() { races_watched_ = true; }
  bool races_watched() const { return races_watched_; }

  // Why the access is forbidden, or nothing.
  std::optional<Check> check(uint64_t address, int64_t bytes, bool write) const;
  // The range nearest to an address, for messages.
  std::string nearest(uint64_t address) const;

 private:
  std::vector<GlobalRange> ranges_;
  bool races_watched_ = false;
  mutable size_t last_ = 0;  // neighbouring accesses are mostly to the same range
};

}  // namespace tidemark::ptx
