#include "runtime/planner/order/graph.h"

#include <algorithm>

#include "runtime/planner/mix.h"

namespace tidemark::planner {
namespace {

void sort_unique(std::vector<int>& v) {
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

}  // namespace

OrderGraph::OrderGraph(const Problem& problem) {
  const auto before = predecessors(problem);
  ops.resize(problem.op_count());
  std::vector<Value> all(problem.storages.size());
  std::vector<bool> at_start(problem.storages.size());
  for (size_t i = 0; i < problem.storages.size(); ++i) {
    const Storage& s = problem.storages[i];
    const StorageId root = problem.root(static_cast<StorageId>(i));
    all[i].size = s.size.count();
    if (s.at_end) all[root].kept = true;
    if (s.at_start) at_start[root] = true;
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Operator& op = problem.operators[i];
    ops[i].before = before[i];
    for (const OpId p : before[i]) ops[p].next.push_back(id);
    ops[i].workspace = op.workspace.count();
    for (const StorageId s : op.inputs) all[problem.root(s)].touchers.push_back(id);
    for (const StorageId s : op.outputs) {
      all[problem.root(s)].touchers.push_back(id);
      if (problem.storages[s].alias_of == kNone) all[s].writer = id;
    }
  }
  for (const InPlace& pair : problem.may_be_in_place) {
    if (problem.storages[pair.input].size == problem.storages[pair.output].size) {
      ops[pair.op].in_place += problem.storages[pair.output].size.count();
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    Value& value = all[i];
    if (problem.storages[i].alias_of != kNone || value.size == 0) continue;
    sort_unique(value.touchers);
    value.at_start = at_start[i];
    if (value.at_start) value.writer = kNone;
    if (value.at_start && value.kept) {
      resident += value.size;
      continue;
    }
    if (value.touchers.empty()) {
      // Live at the start or the end and never touched: it takes space in one of them only.
      continue;
    }
    const int v = static_cast<int>(values.size());
    for (const OpId id : value.touchers) ops[id].values.push_back(v);
    values.push_back(std::move(value));
  }
}

OrderGraph OrderGraph::reversed() const {
  OrderGraph result = *this;
  for (Op& op : result.ops) std::swap(op.before, op.next);
  for (Value& value : result.values) {
    std::swap(value.at_start, value.kept);
    value.writer = kNone;
  }
  return result;
}

OrderState::OrderState(const OrderGraph& graph)
    : graph_(graph),
      live_(graph.resident),
      waits_(graph.size()),
      left_(graph.values.size()),
      takes_(graph.size(), 0),
      growth_(graph.size(), 0),
      done_(graph.size(), false),
      slot_(graph.size(), -1) {
  for (size_t i = 0; i < graph.size(); ++i) takes_[i] = graph.ops[i].workspace;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const OrderGraph::Value& value = graph.values[v];
    left_[v] = static_cast<int>(value.touchers.size());
    if (value.at_start) {
      live_ += value.size;
    } else {
      for (const OpId op : value.touchers) change(op, value.size, value.size);
    }
    if (left_[v] == 1 && !value.kept) change_last(static_cast<int>(v), -value.size);
  }
  for (size_t i = 0; i < graph.size(); ++i) {
    waits_[i] = static_cast<int>(graph.ops[i].before.size());
    if (waits_[i] == 0) make_ready(static_cast<OpId>(i));
  }
}

void OrderState::make_ready(OpId op) {
  slot_[op] = static_cast<int>(ready_.size());
  ready_.push_back(op);
}

void OrderState::make_unready(OpId op) {
  const int at = slot_[op];
  ready_[at] = ready_.back();
  slot_[ready_[at]] = at;
  ready_.pop_back();
  slot_[op] = -1;
}

void OrderState::change(OpId op, int64_t takes, int64_t growth) {
  takes_[op] += takes;
  growth_[op] += growth;
  if (changed != nullptr) changed->push_back(op);
}

// The growth of the last operator that touches `value` changes: it will free the value now, or
// no longer will.
void OrderState::change_last(int value, int64_t growth) {
  for (const OpId op : graph_.values[value].touchers) {
    if (!done_[op]) return change(op, 0, growth);
  }
}

void OrderState::run(OpId op) {
  live_ += growth_[op];
  done_[op] = true;
  key_ ^= mix(static_cast<uint64_t>(op));
  path_.push_back(op);
  make_unready(op);
  for (const int v : graph_.ops[op].values) {
    const OrderGraph::Value& value = graph_.values[v];
    if (left_[v] == static_cast<int>(value.touchers.size()) && !value.at_start) {
      for (const OpId other : value.touchers) {
        if (other != op) change(other, -value.size, -value.size);
      }
    }
    if (--left_[v] == 1 && !value.kept) change_last(v, -value.size);
  }
  for (const OpId next : graph_.ops[op].next) {
    if (--waits_[next] == 0) make_ready(next);
  }
}

void OrderState::undo() {
  const OpId op = path_.back();
  path_.pop_back();
  for (const OpId next : graph_.ops[op].next) {
    if (waits_[next]++ == 0) make_unready(next);
  }
  for (const int v : graph_.ops[op].values) {
    const OrderGraph::Value& value = graph_.values[v];
    if (left_[v] == 1 && !value.kept) change_last(v, value.size);
    if (++left_[v] == static_cast<int>(value.touchers.size()) && !value.at_start) {
      for (const OpId other : value.touchers) {
        if (other != op) change(other, value.size, value.size);
      }
    }
  }
  make_ready(op);
  key_ ^= mix(static_cast<uint64_t>(op));
  done_[op] = false;
  live_ -= growth_[op];
}

}  // namespace tidemark::planner
