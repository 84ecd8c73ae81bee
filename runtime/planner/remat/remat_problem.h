// A rematerialisation problem: a step's nodes, each of which computes one value, in a memory
// that cannot hold all values at once. Values may be dropped and computed again.
//
// A run of a node takes one of its variants. While it runs, memory holds the fixed bytes, all
// live values (its inputs among them), its own value and the variant's workspace. Nodes may run
// in any order, any number of times, as far as the fields below allow.
//
// Units: bytes; times in the problem's own unit. Threads: values, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tidemark::planner::remat {

using NodeId = int32_t;  // position in Problem::nodes
inline constexpr NodeId kNoNode = -1;

enum class When : uint8_t {
  kAny,
  kFirst,  // only as its node's first run
  kAgain,  // only as a later run
};

struct Variant {
  std::string name{};
  double time = 0;
  int64_t workspace = 0;         // while it runs only; may be negative
  std::vector<NodeId> inputs{};  // must be live; ascending, each once
  NodeId overwrites = kNoNode;   // must be live; is gone when the run ends (in place)
  When when = When::kAny;
  std::optional<std::vector<int32_t>> with{};  // of a rider: variants of rider_of; none: all
};

struct Node {
  std::string name{};
  int64_t bytes = 0;
  bool required = false;      // must run at least once; the last node always must
  bool once = false;          // runs at most once
  int64_t adds_fixed = 0;     // becomes fixed for good when a run starts
  NodeId rider_of = kNoNode;  // runs only when the last run before it is this node's
  // Runs only once these will not run any more: the readers of what it writes in place.
  // Ascending, each once; not of riders.
  std::vector<NodeId> after{};
  std::vector<Variant> variants{};  // at least one
};

struct Problem {
  std::string name{};
  std::string unit_time{};
  int64_t fixed_bytes = 0;
  double base_time = 0;  // what a schedule's time is compared with; above 0
  std::vector<Node> nodes{};

  NodeId size() const { return static_cast<NodeId>(nodes.size()); }
  bool must_run(NodeId node) const { return nodes[node].required || node == size() - 1; }
};

// Throws UsageError, naming the node, for an unknown node or variant, a value that depends on
// itself, negative sizes, times that are negative or not finite, sums beyond 2^60 bytes or a
// time of 1e100, and required nodes that can never run.
void check_problem(const Problem& problem);

// The nodes that no required node needs, directly or through others, by any variant: nothing
// makes a schedule run them.
std::vector<NodeId> unneeded_nodes(const Problem& problem);

enum class FirstOrder : uint8_t {
  kAsListed,  // always the least position that can run
  kEager,     // likewise, but nodes of almost no bytes, such as updates of parameters, at once
};

// An order in which every node can have its first run: one variant of each has its inputs, the
// node that it rides on, and those that it comes after before it. Nodes that can never run are
// left out.
std::vector<NodeId> first_order(const Problem& problem,
                                FirstOrder kind = FirstOrder::kAsListed);

}  // namespace tidemark::planner::remat
