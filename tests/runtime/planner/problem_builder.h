// Problems made by hand, one storage or operator at a time.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/planner/problem.h"

namespace tidemark::planner {

inline StorageId add_storage(Problem& problem, std::string name, int64_t size,
                             Kind kind = Kind::kActivation) {
  Storage storage;
  storage.name = std::move(name);
  storage.size = Bytes(size);
  storage.kind = kind;
  problem.storages.push_back(std::move(storage));
  return static_cast<StorageId>(problem.storages.size() - 1);
}

inline OpId add_operator(Problem& problem, std::string name, std::vector<StorageId> inputs,
                         std::vector<StorageId> outputs, std::vector<OpId> after = {}) {
  Operator op;
  op.name = std::move(name);
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.after = std::move(after);
  problem.operators.push_back(std::move(op));
  return static_cast<OpId>(problem.operators.size() - 1);
}

//   a -> y (4) -> b -> u (1) -> d
//     -> z (8) -> c -> v (2) -> d
inline Problem diamond() {
  Problem problem;
  const StorageId y = add_storage(problem, "y", 4), z = add_storage(problem, "z", 8),
                  u = add_storage(problem, "u", 1), v = add_storage(problem, "v", 2);
  add_operator(problem, "a", {}, {y, z});
  add_operator(problem, "b", {y}, {u});
  add_operator(problem, "c", {z}, {v});
  add_operator(problem, "d", {u, v}, {});
  return problem;
}

}  // namespace tidemark::planner
