// Graphs of training steps as MODel (facebookresearch/MODel_opt) describes them, in JSON:
//
//   {"unused_weight_size": 0,
//    "nodes": [{"name": "conv", "op": "call_function", "order": 9}, ...],
//    "edges": [{"name": "conv:0", "size": 4096, "source": "conv", "sinks": ["relu"]}, ...]}
//
// An edge is live from its source's position to its last sink's, both included; one of size 0
// is a control dependency. `order` is the position in the program, where it is known.
//
// In the Problem each node is an operator, and one operator runs at a time. By the file's own
// terms a parameter (`stateful_node`) may therefore come just before its first use and go after
// its last. A program holds its parameters throughout: with Parameters::kResident a
// stateful_node is not an operator but a storage that exists from the start, and to the end if
// it has a `stateful_node_sink`. Such sources go first in the order and such sinks last. A
// `placeholder` is then data that exists from the start.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/problem.h"

namespace tidemark::planner {

enum class Parameters : uint8_t {
  kAsNodes,
  kResident,
};

struct OrderInstance {
  std::string name;
  Problem problem;
  Bytes extra{0};                        // unused_weight_size, to be added to each load
  std::vector<std::string> first, last;  // nodes that are not operators
};

// Throws DataError, naming the place, for text that is not JSON of this form, a duplicate name,
// an edge to an unknown node, a cycle, a size below 0 or sums that are too large. `name` is for
// messages. A text may hold one graph or an array of graphs.
std::vector<OrderInstance> parse_order_graphs(const std::string& text, const std::string& name,
                                              Parameters parameters = Parameters::kAsNodes);

// The names of all nodes in a planned order.
std::vector<std::string> node_order(const OrderInstance& instance,
                                    const std::vector<OpId>& order);

}  // namespace tidemark::planner
