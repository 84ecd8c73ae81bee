// The memory of one lane during one step, for views and reports to draw.
//
// Times are on the device's clock, from the step's beginning. An action that ran on no stream
// (an eviction, the free of a block) has the time that the compute stream had reached. Values,
// no state.
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
  Bytes used{0};  // bytes of the arena, from then on
};

// Why a block was freed.
enum class Ending : uint8_t {
  kStays,      // not freed: still there at the end of the step
  kUnused,     // no longer needed
  kEvicted,    // to be recomputed
  kOffloaded,  // copied out
  kDropped,    // released without a copy: a tier has a valid copy
  kMoved,      // relocated by compaction
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
  uint32_t storage = 0;   // 0: not a tensor (such as a workspace), or not known yet
  Ending ending = Ending::kStays;
  Reason reason = Reason::kNone;  // for a release: its purpose
  Nanos age{0};                   // time since last use, when it ended
};

// A release and its reason.
struct Decision {
  Nanos time{0};
  EventKind kind = EventKind::kEvict;
  Reason reason = Reason::kNone;
  const char* name = "";
  uint32_t storage = 0;
  Category category = Category::kActivation;
  Bytes bytes{0};
  Nanos age{0};   // time since last use
  Nanos cost{0};  // evicted: of rerunning its operator; copied: of the copy
};

struct StepPicture {
  Nanos duration{0};
  Bytes capacity{0};
  std::vector<CurvePoint> curve;
  std::vector<PlacedBlock> blocks;  // by `from`
  std::vector<Decision> decisions;  // the latest of the step, oldest first
  int64_t decisions_made = 0;       // in total
  // Share of unused bytes outside the largest hole, mean over allocations.
  double fragmentation = 0;
  // Some events of the step had left the event log before they could be read.
  bool incomplete = false;
};

inline constexpr size_t kDecisionsKept = 200;
inline constexpr size_t kCurvePoints = 400;

// Reduces the curve to at most `most` points: the first, the last, and the highest and lowest
// of each section.
std::vector<CurvePoint> thin_out(const std::vector<CurvePoint>& curve, size_t most);

}  // namespace tidemark::compare
