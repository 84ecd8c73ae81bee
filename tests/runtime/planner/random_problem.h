// Random problems that use every feature of a problem.
//
// Threads: functions without state.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "runtime/planner/problem.h"
#include "tests/runtime/planner/problem_builder.h"

namespace tidemark::planner {

struct RandomProblemOptions {
  int ops = 8;
  bool in_place = true;
  bool aliases = true;  // views, and updates in place
};

// The result is valid: check_problem() passes.
inline Problem random_problem(uint64_t seed, const RandomProblemOptions& options) {
  std::mt19937_64 random(seed);
  const auto pick = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  Problem problem;
  const auto add = [&](int64_t size) {
    return add_storage(problem, "s" + std::to_string(problem.storages.size()), size);
  };
  for (int64_t i = pick(3); i >= 0; --i) {
    Storage& s = problem.storages[add(1 + pick(9))];
    s.at_start = true;
    s.at_end = pick(2) == 0;
    s.kind = s.at_end ? Kind::kParameter : Kind::kData;
  }
  for (int i = 0; i < options.ops; ++i) {
    Operator op;
    op.name = "op" + std::to_string(i);
    op.stream = static_cast<int32_t>(pick(2));
    if (pick(4) == 0) op.workspace = Bytes(pick(8));
    for (int64_t k = pick(3); k > 0; --k) {
      const auto id =
          static_cast<StorageId>(pick(static_cast<int64_t>(problem.storages.size())));
      op.inputs.push_back(id);
    }
    if (i > 0 && pick(5) == 0) op.after.push_back(static_cast<OpId>(pick(i)));
    for (int64_t k = pick(4) == 0 ? 2 : 1; k > 0; --k) {
      const bool alias = options.aliases && !op.inputs.empty() && pick(5) == 0;
      const StorageId root = alias ? problem.root(op.inputs[0]) : kNone;
      const StorageId id = add(pick(8) == 0 ? 0 : 1 + pick(9));
      Storage& storage = problem.storages[id];
      if (alias) {
        const Bytes whole = problem.storages[root].size;
        storage.alias_of = root;
        storage.size = Bytes(whole.count() == 0 ? 0 : pick(whole.count()) + 1);
        storage.alias_offset = Bytes(pick((whole - storage.size).count() + 1));
      } else {
        storage.at_end = pick(10) == 0;
        if (options.in_place) {
          for (const StorageId input : op.inputs) {
            if (problem.storages[input].alias_of != kNone || pick(2) == 0) continue;
            storage.size = problem.storages[input].size;
            problem.may_be_in_place.push_back({static_cast<OpId>(i), input, id});
            break;
          }
        }
      }
      op.outputs.push_back(id);
    }
    problem.operators.push_back(op);
  }
  return problem;
}

// Calls `visit` with each order that the problem allows.
template <class Visit>
void for_each_order(const Problem& problem, Visit visit) {
  const auto before = predecessors(problem);
  std::vector<OpId> order;
  std::vector<bool> done(problem.op_count());
  const auto walk = [&](const auto& self) -> void {
    if (order.size() == problem.op_count()) return visit(order);
    for (size_t i = 0; i < problem.op_count(); ++i) {
      if (done[i] ||
          !std::all_of(before[i].begin(), before[i].end(), [&](OpId p) { return done[p]; })) {
        continue;
      }
      done[i] = true;
      order.push_back(static_cast<OpId>(i));
      self(self);
      order.pop_back();
      done[i] = false;
    }
  };
  walk(walk);
}

}  // namespace tidemark::planner
