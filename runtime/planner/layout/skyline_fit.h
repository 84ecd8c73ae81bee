// Layouts from below: the lowest segment of the skyline takes, of the buffers that lie wholly
// in it, the one of highest priority; if there is none, it is raised to its lower neighbour.
// With the longest first, this is LLFB (Sekiyama et al., 2018).
//
//   offset
//     ^   +----+            The lowest segment, at times [3, 8): a buffer of [4, 8) may be
//     next, |   |    |    +--     one of [2, 5) only once the segment has risen to the level at
//     its |   |    +----+       left.
//     +---+--3----8-+--> time
//
// A waiting buffer is found by a tree over begins and ends (a k-d tree), so a layout takes
// about O(n log n), whatever number of buffers live at one time.
//
// Threads: an object belongs to one.
#pragma once

#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/layout/sections.h"

namespace tidemark::planner {

class SkylineFit {
 public:
  explicit SkylineFit(const std::vector<Buffer>& buffers);

  // `order`: all buffers that take space and time, highest priority first. May be called again.
  Offsets place(const std::vector<int>& order);

  const SectionTimes& times() const { return times_; }

 private:
  // Of the waiting buffers below it: the earliest and latest begin and end, in sections, and
  // the first in the order.
  struct Node {
    int begin_from, begin_to, end_from, end_to;
    int best;
  };
  struct Segment {
    int end;
    int before, after;  // the begins of its neighbours, or -1
    int64_t level;
  };

  void build(size_t node, size_t from, size_t to, bool by_end, std::vector<int>& items);
  void wait(const std::vector<int>& order);
  void leave(int buffer);
  void find(size_t node, int begin, int end, int& best) const;
  void raise(int lowest);
  void split(int lowest, int buffer);
  void join_next(int segment);
  void add_level(int segment);

  const std::vector<Buffer>& buffers_;
  SectionTimes times_;
  size_t leaves_ = 1;
  std::vector<Node> nodes_;
  std::vector<int> buffer_at_;  // per leaf, or -1
  std::vector<size_t> leaf_of_;
  std::vector<Segment> segments_;                  // by begin
  std::vector<std::pair<int64_t, int>> by_level_;  // a heap; some entries are out of date
};

// The buffers that take space and time, by falling lifetime, then size.
std::vector<int> longest_first(const std::vector<Buffer>& buffers);

}  // namespace tidemark::planner
