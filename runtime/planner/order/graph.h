// A problem as the order planners see it: operators, and values with the operators that touch
// them. Aliases are part of the storage that they lie in; what is resident all the time is one
// sum.
//
// Threads: a graph is not changed after it is made; any thread may read it.
#pragma once

#include <vector>

#include "runtime/planner/problem.h"

namespace tidemark::planner {

struct OrderGraph {
  // Live from the first of its touchers to the last; so a graph makes sense backwards too.
  struct Value {
    int64_t size = 0;
    OpId writer = kNone;         // none: there at the start
    bool at_start = false;       // live before any of them
    bool kept = false;           // live after all of them
    std::vector<OpId> touchers;  // the writer too; sorted, each once
  };
  struct Op {
    std::vector<int> values;  // that it touches, sorted, each once
    std::vector<OpId> before, next;
    int64_t workspace = 0;
    int64_t in_place = 0;  // what in-place pairs may spare while it runs
  };

  explicit OrderGraph(const Problem& problem);
  size_t size() const { return ops.size(); }
  // With time turned round: its orders are this one's from the back, with the same loads.
  OrderGraph reversed() const;

  std::vector<Op> ops;
  std::vector<Value> values;  // without those resident throughout, without size, or untouched
  int64_t resident = 0;       // bytes that live from the start to the end
};

// Runs operators one after the other and keeps count; can take them back, last first.
class OrderState {
 public:
  explicit OrderState(const OrderGraph& graph);

  int64_t live() const { return live_; }  // between operators
  // Most bytes live while `op` runs next.
  int64_t transient(OpId op) const { return live_ + takes_[op]; }
  // By how much live() changes if `op` runs next.
  int64_t growth(OpId op) const { return growth_[op]; }
  const std::vector<OpId>& ready() const { return ready_; }  // in no order
  bool done(OpId op) const { return done_[op]; }
  size_t count() const { return path_.size(); }
  const std::vector<OpId>& path() const { return path_; }
  uint64_t key() const { return key_; }  // of the set of operators done

  // REQUIRES: it is ready.
  void run(OpId op);
  void undo();

  // Called by run() and undo() for each operator whose growth changed, if set.
  std::vector<OpId>* changed = nullptr;

 private:
  void change(OpId op, int64_t takes, int64_t growth);
  void change_last(int value, int64_t growth);
  void make_ready(OpId op);
  void make_unready(OpId op);

  const OrderGraph& graph_;
  int64_t live_ = 0;
  uint64_t key_ = 0;
  std::vector<int> waits_;      // per operator: those before it that have not run
  std::vector<int> left_;       // per value: touchers that have not run
  std::vector<int64_t> takes_;  // of each operator, given what has run: bytes not live yet
  std::vector<int64_t> growth_;
  std::vector<bool> done_;
  std::vector<OpId> ready_, path_;
  std::vector<int> slot_;  // in ready_
};

}  // namespace tidemark::planner
