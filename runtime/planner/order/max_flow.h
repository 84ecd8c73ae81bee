// Maximum flow from a source to a sink (Dinic).
//
// Threads: one object, one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/limits.h"

namespace tidemark::planner {

class MaxFlow {
 public:
  static constexpr int64_t kInfinite = INT64_MAX / 4;
  static constexpr int kSource = 0, kSink = 1;

  int add_node() {
    edges_of_.emplace_back();
    return static_cast<int>(edges_of_.size()) - 1;
  }
  void add_edge(int from, int to, int64_t capacity);

  // Runs to the maximum flow or a limit. REQUIRES: no path consists of infinite edges only.
  int64_t run(int64_t work_limit, const Stopwatch& watch);
  int64_t work() const { return work_; }  // edges examined

 private:
  struct Edge {
    int to;
    int64_t left;  // the edge back is its neighbour in pairs: k ^ 1
  };

  bool measure();
  int64_t push_path();
  bool may_go_on() const;

  std::vector<Edge> edges_;
  std::vector<std::vector<int>> edges_of_{2};
  std::vector<int> depth_;
  std::vector<size_t> next_;  // per node: first edge that may still help
  int64_t work_ = 0, work_limit_ = 0;
  const Stopwatch* watch_ = nullptr;
};

}  // namespace tidemark::planner
