// A sequence of allocations and frees: what a run asked an arena for, without where it was put.
//
// The text format, which may be gzipped; sizes in bytes:
//   tidemark-trace 1
//   @ NAME VALUE      about the run; VALUE goes on to the line's end
//   + SIZE CATEGORY   allocate
//   - AGE             free: 0 is the youngest block that is live, 1 the one before it, ...
//   end EVENTS        how many + and - lines there were
// CATEGORY is a letter: p(arameter) g(radient) o(ptimizer state) b(uffer) a(ctivation) d(ata)
// w(orkspace). Ages instead of names make steps that are alike alike in the file, which halves
// it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/category.h"
#include "runtime/core/units.h"

namespace tidemark {

struct TraceEvent {
  enum Kind : uint8_t { kAllocate, kFree };
  Kind kind = kAllocate;
  Category category = Category::kActivation;  // of an allocation
  int64_t block = 0;                          // numbered from 0 in the order of allocation
  Bytes size{0};                              // of an allocation
  bool operator==(const TraceEvent&) const = default;
};

struct MemoryTrace {
  std::map<std::string, std::string> about;
  std::vector<TraceEvent> events;
  int64_t blocks = 0;  // allocated in all

  // The most that is live at once, with sizes rounded up as an arena does: no arena can be
  // smaller.
  Bytes max_live() const;
  bool operator==(const MemoryTrace&) const = default;
};

// Throws DataError with the byte at fault, counted in the unpacked text (in the file where the
// gzip data themselves are damaged): not a trace, an unknown or malformed line, a block freed
// that is not there, a file that ends early or goes on after its end.
MemoryTrace read_trace(const std::string& path);

// Gzipped if the name ends in ".gz"; the same trace gives the same bytes. Throws DataError if
// the file cannot be written. REQUIRES: events as an arena sees them; no name in `about` has a
// space, no text a line's end.
void write_trace(const MemoryTrace& trace, const std::string& path);

}  // namespace tidemark
