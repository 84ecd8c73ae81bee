// Decides whether buffers fit under a height: depth-first search in the manner of MiniMalloc
// (Moffitt, ASPLOS 2023), with stronger inference and backjumping.
//
// Any layout that fits can be compacted until each buffer rests on another or on the floor, and
// no buffer fits into a hole below it. The search builds such layouts by deciding, buffer by
// buffer, whether it lies where it would rest now, below all neighbours (buffers that live at a
// common time) not yet placed:
// - a buffer passed over lies above one of these, and stays above the least end among them;
// - at each time a buffer lies below all that end above its offset; where these do not fit
//   there, it lies above the least end among them;
// - remaining buffers that are separate in time are searched separately;
// - each least offset is known with the decisions from which it follows. If a failure does not
//   follow from a decision, the other choice would fail too and is skipped (conflict-directed
//   backjumping; Prosser 1993). Far-away times are thus not searched again and again.
// The last three have a switch each, for ablation.
//
// Threads: none shared; one object, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/planner/layout/layout.h"

namespace tidemark::planner {

enum class Verdict : uint8_t {
  kFits,
  kDoesNotFit,  // proven
  kUnknown,     // a limit was reached first
};

// In what order the search decides on buffers; each is complete. `Rank` breaks ties.
enum class Walk : uint8_t {
  kLowest,
  // First where a buffer is low and its tightest time has little space to waste: less, the more
  // often runs of the same search failed at that time. The seed says how much space counts.
  kTight,
};

enum class Rank : uint8_t {
  kLifetime,
  kLoadLifetime,
  kSize,
  kArea,
  // These do not depend on how long the sections last.
  kSections,         // lifetime in sections
  kSectionsAndSize,  // that times the root of the size
  kNeighbours,       // the number of buffers met
};
inline constexpr int kRankCount = 7;

struct ExactSearchOptions {
  bool decompose = true;
  bool infer_lowest = true;
  bool jump = true;
  // The highest allowed end of each buffer, at least its size. Empty: only the capacity limits.
  std::vector<Bytes> ceilings;
};

class ExactSearch {
 public:
  // REQUIRES: sizes > 0, lifetimes not empty; at most kMaxBuffers of them.
  static constexpr size_t kMaxBuffers = 6000;
  explicit ExactSearch(const std::vector<Buffer>& buffers, ExactSearchOptions options = {});
  ~ExactSearch();
  ExactSearch(const ExactSearch&) = delete;
  ExactSearch& operator=(const ExactSearch&) = delete;

  // `seed` perturbs the rank; 0 leaves it unchanged. Runs learn at what times earlier runs
  // failed: a run depends on those before it.
  Verdict run(Bytes capacity, Walk walk, Rank rank, uint64_t seed, int64_t node_limit,
              const Stopwatch& watch);
  const Offsets& offsets() const;  // REQUIRES: the last run returned kFits
  int64_t nodes() const;           // of all runs

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::planner
