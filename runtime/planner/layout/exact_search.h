// Decides whether buffers fit under a height: depth-first search in the manner of MiniMalloc
// (Moffitt, ASPLOS 2023), with stronger inference.
//
// A layout that fits can be slid down until each buffer rests on another or on the floor, and
// no buffer fits into a hole below it. Such layouts are built by deciding of one buffer after
// the other whether it lies where it would rest now:
// - a buffer passed over must come to rest on one not yet placed, which raises its least
// offset;
// - at each time the lowest buffer still to come must begin low enough for all the others to
//   stack above it; those that cannot be it lie above the least end of those that can;
// - buffers to come that fall apart in time are searched apart;
// - a set of buffers that failed over some skyline is not tried there again.
// Each of the last three has a switch, for ablation. Both walks are complete; which of them
// ends soon differs from one instance to the next.
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
  kUnknown,     // a limit struck first
};

// How ties in offset are broken, and so in which order the tree is walked.
enum class Walk : uint8_t {
  kBottomUp,  // in the order of (offset, rank) over all buffers, so offsets below are closed
  kLocal,     // lowest first as well, but what lies apart in time does not bind each other
};

enum class Rank : uint8_t { kLifetime, kLoad, kLoadLifetime, kSize, kArea };

struct ExactSearchOptions {
  bool decompose = true;
  bool infer_lowest = true;
  bool remember = true;
  // Per buffer: it must end there or below. Empty: the capacity alone. Not below its size.
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

  // `seed` disturbs the rank; 0 leaves it as it is.
  Verdict run(Bytes capacity, Walk walk, Rank rank, uint64_t seed, int64_t node_limit,
              const Stopwatch& watch);
  const Offsets& offsets() const;  // REQUIRES: the last run said kFits
  int64_t nodes() const;           // of all runs

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::planner
