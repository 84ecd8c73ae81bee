#include "runtime/planner/layout/time_tree.h"

#include <algorithm>

namespace tidemark::planner {

TimeTree::TimeTree(const std::vector<Buffer>& buffers)
    : buffers_(buffers), times_(section_times(buffers)) {
  while (leaves_ < times_.count) leaves_ *= 2;
  const size_t nodes = 2 * static_cast<size_t>(leaves_);
  any_.resize(nodes);
  whole_.resize(nodes);
}

void TimeTree::add(Runs& runs, Run run) {
  if (runs.empty() || runs.back().end < run.begin) {
    runs.push_back(run);
    return;
  }
  // The first that touches it, and the first beyond.
  const auto from = std::lower_bound(runs.begin(), runs.end(), run.begin,
                                     [](const Run& r, int64_t begin) { return r.end < begin; });
  auto to = from;
  for (; to != runs.end() && to->begin <= run.end; ++to) {
    run.begin = std::min(run.begin, to->begin);
    run.end = std::max(run.end, to->end);
  }
  if (from == to) {
    runs.insert(from, run);
    return;
  }
  *from = run;
  runs.erase(from + 1, to);
}

template <class Above, class Covered>
void TimeTree::walk(size_t buffer, Above above, Covered covered) const {
  const int first = times_.first[buffer], last = times_.last[buffer];
  const auto visit = [&](const auto& self, int node, int begin, int end) -> void {
    if (first <= begin && end <= last) return covered(node);
    above(node);
    const int middle = begin + (end - begin) / 2;
    if (first < middle) self(self, 2 * node, begin, middle);
    if (middle < last) self(self, 2 * node + 1, middle, end);
  };
  visit(visit, 1, 0, leaves_);
}

Offset TimeTree::lowest(size_t buffer) {
  cursors_.clear();
  const auto look_at = [&](const Runs& runs) {
    if (!runs.empty()) cursors_.push_back({runs.data(), runs.data() + runs.size()});
  };
  walk(
      buffer, [&](int node) { look_at(whole_[node]); }, [&](int node) { look_at(any_[node]); });
  const int64_t size = buffers_[buffer].size.count();
  int64_t place = 0;
  // Each set of runs pushes the place up in turn, until none has for a whole round.
  for (size_t k = 0, agreed = 0; agreed < cursors_.size();
       k = k + 1 < cursors_.size() ? k + 1 : 0) {
    Cursor& at = cursors_[k];
    const int64_t before = place;
    for (;; ++at.next) {
      if (at.next != at.end && at.next->end <= place) {
        at.next =
            std::partition_point(at.next, at.end, [&](const Run& r) { return r.end <= place; });
      }
      if (at.next == at.end || at.next->begin >= place + size) break;
      place = at.next->end;
    }
    agreed = place == before ? agreed + 1 : 1;
  }
  return Offset(place);
}

void TimeTree::place(size_t buffer, Offset at) {
  const Run run{at.value(), (at + buffers_[buffer].size).value()};
  walk(
      buffer, [&](int node) { add(any_[node], run); },
      [&](int node) { add(any_[node], run), add(whole_[node], run); });
}

}  // namespace tidemark::planner
