// A rematerialisation problem as MONeT, Chen and Gist see one: a forward pass whose values may
// be computed again, then backward nodes that run once each, in order.
//
//   position   0 ............ forward | forward ............................... size
//              forward nodes, once    | backward nodes, once: stages 1, 2, ...
//
// How a general problem is read so:
// - The order is the listed one. A node that can run only later, by its inputs, moves behind
//   them; a rider moves directly behind the node that it rides on.
// - The backward pass begins at the node whose descendants read the most values listed before
//   it: the gradient of the loss, on which all gradients depend and the forward pass does not.
//   Everything listed before is forward. Reads by updates (once, no bytes) do not count: where
//   all gradients wait for their norm, the updates read as many values.
// - A stage is one backward node that reads forward values, or all consecutive ones that read
//   none. Forward nodes are computed again only at the begin of a stage of the first kind.
// - A value of the backward pass lives from its node to its last reader in this order.
// - A forward node is computed again only if it may run twice, adds no fixed bytes, and a stage
//   from now on reads its value, directly or through nodes computed from it; and never if a
//   stage may need it after a node that comes after all its runs (Node::after).
// - Forward nodes run in the forward pass even if nothing needs their value; riders need not,
//   unless they are required. A rider of a backward node always runs: it reads no forward value
//   and goes with all variants.
// - In place: a backward node may overwrite only a value that no later node reads.
//
// Throws nothing but UsageError, for problems that cannot be read so.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/remat/remat_problem.h"

namespace tidemark::planner::remat {

// A variant, with positions in place of nodes.
struct Way {
  int32_t variant = 0;  // of the node
  double time = 0;
  int64_t workspace = 0;
  std::vector<int> forward{}, backward{};  // inputs of either pass, and what it overwrites
  int overwrites = -1;                     // position
  When when = When::kAny;
  std::vector<int32_t> with{};  // of a rider: variants of the node that it rides on
};

struct Step {
  NodeId node = kNoNode;
  int64_t bytes = 0;
  int64_t fixed_before = 0, fixed = 0;  // fixed bytes before it runs first, and from then on
  int rides_on = -1;                    // position
  bool must_run = true;                 // off: a rider that need not, whose value may be unused
  bool may_run_again = false;           // forward steps only
  std::vector<Way> first{}, again{};    // ways of the first run, and of a later one
};

struct Stage {
  int first = 0, end = 0;          // positions of its backward nodes, half-open
  bool reads_forward = false;      // then it has one node
  std::vector<char> needed{};      // forward values that this stage or a later one may need
  std::vector<int> last_reader{};  // by value: the last forward step it may compute from it
  int64_t gradients = 0;           // bytes of gradients live when it begins
  bool may_need(int i) const { return needed[static_cast<size_t>(i)] != 0; }
};

struct TwoPassOptions {
  FirstOrder order = FirstOrder::kAsListed;  // kEager: updates as soon as they can run
  // Off: each run takes its first possible variant, one in place only if all are.
  bool select_operators = true;
};

struct TwoPass {
  std::vector<Step> steps{};
  int forward = 0;                   // number of forward steps
  std::vector<Stage> stages{};       // stages[0] is the forward pass itself
  std::vector<int> last_reader{};    // by forward value: its last reader in the forward pass
  std::vector<int64_t> gradients{};  // by position: bytes of other gradients live there

  int size() const { return static_cast<int>(steps.size()); }
};

// Throws UsageError if the problem has no backward pass, a node reads a value that comes later
// in the order, a rider of a backward node is another one's second or reads forward values, two
// riders of a node or a rider of a rider must run, or a node has no variant left.
TwoPass read_two_pass(const Problem& problem, const TwoPassOptions& options = {});

}  // namespace tidemark::planner::remat
