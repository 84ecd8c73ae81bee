// One step of one lane, seen from its memory: what faces and reports draw.
//
// Times are on the device's clock, from the step's beginning; where nothing ran on a stream (an
// eviction, a block that is freed), where the compute stream stood then. Values, no state.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/core/category.h"
#include "runtime/core/units.h"
#include "runtime/telemetry/event_log.h"

namespace tidemark::compare {

struct CurvePoint {
  Nanos time{0};
  Bytes used{0};  // of the arena, from then on
};

// Why a block was given back.
enum class Ending : uint8_t {
  kStays,      // it was not: it is there at the step's end
  kUnused,     // nothing wants it any more
  kEvicted,    // to be recomputed
  kOffloaded,  // copied out
  kDropped,    // released for nothing: a valid copy was on a tier
  kMoved,      // slid to another place
};
std::string_view to_string(Ending ending);

// A block in the arena:
//
//   offset ^      +---------+ offset + bytes
//          |      |  relu   |
//          |      +---------+ offset
//          +------from------to------> time
struct PlacedBlock {
  Offset offset;
  Bytes bytes{0};
  Nanos from{0}, to{0};      // cut to the step
  bool from_before = false;  // there when the step began
  Category category = Category::kActivation;
  const char* name = "";  // of the operator that wrote it, or its kind; static text
  uint32_t storage = 0;   // 0: not a tensor, such as a workspace, or not known yet
  Ending ending = Ending::kStays;
  Reason reason = Reason::kNone;  // of a release: what it was for
  Nanos age{0};                   // at its end: since it was last used
};

// A release, and why.
struct Decision {
  Nanos time{0};
  EventKind kind = EventKind::kEvict;
  Reason reason = Reason::kNone;
  const char* name = "";
  uint32_t storage = 0;
  Category category = Category::kActivation;
  Bytes bytes{0};
  Nanos age{0};   // since it was last used
  Nanos cost{0};  // evicted: of its operator, to run it again; copied: of the copy
};

struct StepPicture {
  Nanos duration{0};
  Bytes capacity{0};
  std::vector<CurvePoint> curve;
  std::vector<PlacedBlock> blocks;  // by `from`
  std::vector<Decision> decisions;  // the last of the step, oldest first
  int64_t decisions_made = 0;       // all of them
  // Share of the unused bytes that the largest hole does not have, mean over allocations.
  double fragmentation = 0;
  // Part of the step had left the event log before it could be read.
  bool incomplete = false;
};

inline constexpr size_t kDecisionsKept = 200;
inline constexpr size_t kCurvePoints = 400;

// At most `most` points: the first, the last, and of each stretch its highest and its lowest.
std::vector<CurvePoint> thin_out(const std::vector<CurvePoint>& curve, size_t most);

}  // namespace tidemark::compare
