// Private to layout/: a MovingProblem without its small buffers, which lie apart: there they
// never move and are in nobody's way.
//
//   | large ones ...                         | small, without a preferred offset |   top
//   | small, with one | large ones, which prefer higher offsets ...              |   bottom
//
// Small ones whose preferred offsets are above that of a large one stay with the large ones.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/planner/layout/moving_layout.h"

namespace tidemark::planner {

class SmallApart {
 public:
  explicit SmallApart(const MovingProblem& problem);

  // Whether the others fit beside them.
  bool fits() const;
  const MovingProblem& rest() const { return rest_; }
  // The layout of all buffers, from one of the rest.
  MovingLayout join(MovingLayout layout) const;

 private:
  bool small(size_t i) const;
  void take_lowest();
  void take_highest();
  void take(size_t i, Offset at);

  MovingProblem rest_;
  std::vector<std::optional<Offset>> at_;  // of those apart
  Offset floor_, ceiling_;                 // of the rest
};

}  // namespace tidemark::planner
