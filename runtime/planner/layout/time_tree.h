// Placed buffers, found by time without looking at each: a tree over time whose nodes hold the
// union of the bytes taken below them. Where buffers lie close together a union is a few runs
// of bytes, however many buffers it is made of, so that a placement takes about O(log^2 n).
//
//   any    bytes that some buffer takes at some time of the node
//   whole  bytes that some buffer takes during all of it
//
// An interval is made of O(log n) nodes: taken there are `any` of those nodes, and `whole` of
// the nodes above them.
//
// Threads: an object belongs to one.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/layout/sections.h"

namespace tidemark::planner {

class TimeTree {
 public:
  // Buffers that take no space or time are never placed. REQUIRES: `buffers` outlives the tree.
  explicit TimeTree(const std::vector<Buffer>& buffers);

  // The lowest offset at which nothing placed is met. REQUIRES: not empty (is_empty()).
  Offset lowest(size_t buffer);
  void place(size_t buffer, Offset at);

 private:
  struct Run {
    int64_t begin, end;
  };
  using Runs = std::vector<Run>;  // by begin; neither touch nor overlap
  struct Cursor {
    const Run* next;
    const Run* end;
  };

  static void add(Runs& runs, Run run);
  // Calls covered() with the nodes that make up the buffer's life, above() with those above
  // them.
  template <class Above, class Covered>
  void walk(size_t buffer, Above above, Covered covered) const;

  const std::vector<Buffer>& buffers_;
  SectionTimes times_;
  int leaves_ = 1;
  std::vector<Runs> any_, whole_;
  std::vector<Cursor> cursors_;
};

}  // namespace tidemark::planner
