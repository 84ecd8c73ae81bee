#include <algorithm>
#include <list>
#include <numeric>

#include "runtime/planner/layout/heuristics.h"

namespace tidemark::planner {

Offsets lowest_longest(const std::vector<Buffer>& buffers) {
  struct Stretch {
    int64_t begin, end;
    Offset level;
  };
  std::vector<size_t> waiting;
  int64_t first = 0, last = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (is_empty(buffers[i])) continue;
    if (waiting.empty()) first = buffers[i].begin, last = buffers[i].end;
    first = std::min(first, buffers[i].begin);
    last = std::max(last, buffers[i].end);
    waiting.push_back(i);
  }
  // Longest first, so that the first buffer that fits into a segment is the longest.
  std::stable_sort(waiting.begin(), waiting.end(), [&](size_t a, size_t b) {
    const int64_t x = buffers[a].end - buffers[a].begin;
    const int64_t y = buffers[b].end - buffers[b].begin;
    return x != y ? x > y : buffers[a].size > buffers[b].size;
  });
  Offsets offsets(buffers.size());
  std::list<Stretch> skyline{{first, last, Offset()}};
  while (!waiting.empty()) {
    const auto lowest =
        std::min_element(skyline.begin(), skyline.end(),
                         [](const Stretch& a, const Stretch& b) { return a.level < b.level; });
    const auto found = std::find_if(waiting.begin(), waiting.end(), [&](size_t i) {
      return lowest->begin <= buffers[i].begin && buffers[i].end <= lowest->end;
    });
    if (found == waiting.end()) {
      // No buffer lies wholly in it: the segment rises to its lower neighbour and joins it.
      const auto after = std::next(lowest);
      const bool has_before = lowest != skyline.begin(), has_after = after != skyline.end();
      if (has_before && (!has_after || std::prev(lowest)->level <= after->level)) {
        std::prev(lowest)->end = lowest->end;
      } else {
        after->begin = lowest->begin;
      }
      const auto raised = has_before && (!has_after || std::prev(lowest)->level <= after->level)
                              ? std::prev(lowest)
                              : after;
      skyline.erase(lowest);
      const auto next = std::next(raised);
      if (next != skyline.end() && next->level == raised->level) {
        raised->end = next->end;
        skyline.erase(next);
      }
      continue;
    }
    const size_t i = *found;
    waiting.erase(found);
    offsets[i] = lowest->level;
    const Stretch whole = *lowest;
    if (whole.begin < buffers[i].begin) {
      skyline.insert(lowest, {whole.begin, buffers[i].begin, whole.level});
    }
    if (buffers[i].end < whole.end) {
      skyline.insert(std::next(lowest), {buffers[i].end, whole.end, whole.level});
    }
    *lowest = {buffers[i].begin, buffers[i].end, whole.level + buffers[i].size};
  }
  return offsets;
}

}  // namespace tidemark::planner
