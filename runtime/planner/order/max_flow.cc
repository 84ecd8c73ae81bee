#include "runtime/planner/order/max_flow.h"

#include <algorithm>

namespace tidemark::planner {

void MaxFlow::add_edge(int from, int to, int64_t capacity) {
  edges_of_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MaxFlow::may_go_on() const { return work_ < work_limit_ && !watch_->expired(); }

int64_t MaxFlow::run(int64_t work_limit, const Stopwatch& watch) {
  work_limit_ = work_limit;
  watch_ = &watch;
  int64_t flow = 0;
  while (may_go_on() && measure()) {
    next_.assign(edges_of_.size(), 0);
    for (int64_t pushed; may_go_on() && (pushed = push_path()) > 0;) flow += pushed;
  }
  return flow;
}

// Measures distances from the source. Returns false if the sink is unreachable.
bool MaxFlow::measure() {
  depth_.assign(edges_of_.size(), -1);
  depth_[kSource] = 0;
  std::vector<int> queue{kSource};
  for (size_t k = 0; k < queue.size() && depth_[kSink] < 0; ++k) {
    for (const int e : edges_of_[queue[k]]) {
      ++work_;
      const Edge& edge = edges_[e];
      if (edge.left == 0 || depth_[edge.to] >= 0) continue;
      depth_[edge.to] = depth_[queue[k]] + 1;
      queue.push_back(edge.to);
    }
  }
  return depth_[kSink] >= 0;
}

// Pushes as much as possible along one shortest path.
int64_t MaxFlow::push_path() {
  std::vector<int> path;
  int node = kSource;
  while (node != kSink) {
    bool advanced = false;
    for (size_t& k = next_[node]; k < edges_of_[node].size(); ++k) {
      ++work_;
      const int e = edges_of_[node][k];
      if (edges_[e].left > 0 && depth_[edges_[e].to] == depth_[node] + 1) {
        path.push_back(e);
        node = edges_[e].to;
        advanced = true;
        break;
      }
    }
    if (advanced) continue;
    if (path.empty()) return 0;
    node = edges_[path.back() ^ 1].to;
    path.pop_back();
    ++next_[node];
  }
  int64_t least = kInfinite;
  for (const int e : path) least = std::min(least, edges_[e].left);
  for (const int e : path) {
    edges_[e].left -= least;
    edges_[e ^ 1].left += least;
  }
  return least;
}

}  // namespace tidemark::planner
