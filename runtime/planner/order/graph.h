// A problem for order planners: operators, and values with the operators that touch them.
// Aliases are part of their storage; values resident throughout are one sum.
//
// Threads: a graph is not changed after it is made; any thread may read it.
#pragma once

#include <vector>

#include "runtime/planner/problem.h"

namespace tidemark::planner {

struct OrderGraph {
  // Live from the first of its touchers to the last, so the graph may be reversed.
  struct Value {
    int64_t size = 0;
    OpId writer = kNone;         // kNone: exists at the start
    bool at_start = false;       // live before any of them
    bool kept = false;           // live after all of them
    std::vector<OpId> touchers;  // including the writer; sorted, unique
  };
  struct Op {
    std::vector<int> values;  // touched by it; sorted, unique
    std::vector<OpId> before, next;
    int64_t workspace = 0;
    int64_t in_place = 0;  // bytes that in-place pairs may save while it runs
  };

  explicit OrderGraph(const Problem& problem);
  size_t size() const { return ops.size(); }
  // The graph reversed in time: its orders are this graph's orders reversed, with the same
  // loads.
  OrderGraph reversed() const;

  std::vector<Op> ops;
  std::vector<Value> values;  // except values resident throughout, empty or untouched
  int64_t resident = 0;       // bytes that live from the start to the end
};

// Runs operators one by one and tracks live bytes; operators can be undone, last first.
class OrderState {
 public:
  explicit OrderState(const OrderGraph& graph);

  int64_t live() const { return live_; }  // between operators
  // Most bytes live while `op` runs next.
  int64_t transient(OpId op) const { return live_ + takes_[op]; }
  // The change of live() if `op` runs next.
  int64_t growth(OpId op) const { return growth_[op]; }
  const std::vector<OpId>& ready() const { return ready_; }  // in no order
  bool done(OpId op) const { return done_[op]; }
  size_t count() const { return path_.size(); }
  const std::vector<OpId>& path() const { return path_; }
  uint64_t key() const { return key_; }  // of the set of operators done

  // REQUIRES: `op` is ready.
  void run(OpId op);
  void undo();

  // If set, run() and undo() append each operator whose growth changed.
  std::vector<OpId>* changed = nullptr;

 private:
  void change(OpId op, int64_t takes, int64_t growth);
  void change_last(int value, int64_t growth);
  void make_ready(OpId op);
  void make_unready(OpId op);

  const OrderGraph& graph_;
  int64_t live_ = 0;
  uint64_t key_ = 0;
  std::vector<int> waits_;      // per operator: predecessors that have not run
  std::vector<int> left_;       // per value: touchers that have not run
  std::vector<int64_t> takes_;  // per operator: bytes not live yet, given the operators run
  std::vector<int64_t> growth_;
  std::vector<bool> done_;
  std::vector<OpId> ready_, path_;
  std::vector<int> slot_;  // in ready_
};

}  // namespace tidemark::planner
