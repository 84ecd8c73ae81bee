// A sequence of allocations and frees: a run's requests to an arena, without the placements.
//
// The text format, which may be gzipped; sizes in bytes:
//   tidemark-trace 1
//   @ NAME VALUE      about the run; VALUE goes on to the line's end
//   + SIZE CATEGORY   allocate
//   - AGE             free: 0 is the youngest block that is live, 1 the one before it, ...
//   end EVENTS        how many + and - lines there were
// CATEGORY is a letter: p(arameter) g(radient) o(ptimizer state) b(uffer) a(ctivation) d(ata)
// w(orkspace). Ages, unlike names, make similar steps look the same in the file, which halves
// the file.
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
  int64_t blocks = 0;  // allocated in total

  // The maximum of the bytes live at once, with sizes rounded up as in an arena. No arena can
  // be smaller.
  Bytes max_live() const;
  bool operator==(const MemoryTrace&) const = default;
};

// Throws DataError for a file that is not a trace, an unknown or malformed line, the free of a
// block that does not exist, or a file that ends early or continues after its end. The message
// gives the offending byte in the uncompressed text (in the file, if the gzip data themselves
// are damaged).
MemoryTrace read_trace(const std::string& path);

// Writes gzip if the name ends in ".gz"; the same trace gives the same bytes. Throws DataError
// if the file cannot be written. REQUIRES: events are a valid sequence for an arena; no name in
// `about` contains a space, and no text a line break.
void write_trace(const MemoryTrace& trace, const std::string& path);

}  // namespace tidemark
