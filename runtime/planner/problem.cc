#include "runtime/planner/problem.h"

#include <algorithm>

#include "runtime/core/errors.h"

namespace tidemark::planner {
namespace {

// Offsets, sums of two loads and products by 2 stay below 2^63.
constexpr int64_t kMaxSum = int64_t{1} << 61;

class Checker {
 public:
  explicit Checker(const Problem& problem) : problem_(problem) {}

  void run() {
    check_storages();
    check_operators();
    check_in_place();
    check_cycles();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError("[problem] " + what);
  }
  std::string op(size_t i) const {
    return "operator " + std::to_string(i) + " '" + problem_.operators[i].name + "'";
  }
  std::string storage(size_t i) const {
    return "storage " + std::to_string(i) + " '" + problem_.storages[i].name + "'";
  }
  bool is_storage(StorageId id) const {
    return id >= 0 && static_cast<size_t>(id) < problem_.storages.size();
  }
  bool is_op(OpId id) const {
    return id >= 0 && static_cast<size_t>(id) < problem_.operators.size();
  }
  void add(Bytes size, const std::string& where) {
    if (size < Bytes(0)) fail(where + ": negative size " + std::to_string(size.count()));
    if (size.count() > kMaxSum - sum_)
      fail(where + ": the sizes up to here sum to more than 2^61");
    sum_ += size.count();
  }

  void check_storages() {
    for (size_t i = 0; i < problem_.storages.size(); ++i) {
      const Storage& s = problem_.storages[i];
      add(s.size, storage(i));
      if (s.alias_of == kNone) continue;
      if (!is_storage(s.alias_of))
        fail(storage(i) + ": alias of a storage that does not exist");
      const Storage& whole = problem_.storages[s.alias_of];
      if (whole.alias_of != kNone) fail(storage(i) + ": alias of an alias");
      if (s.alias_offset < Bytes(0) || s.size > whole.size ||
          s.alias_offset > whole.size - s.size) {
        fail(storage(i) + ": extends beyond " + storage(s.alias_of));
      }
    }
  }

  void check_operators() {
    writer_.assign(problem_.storages.size(), kNone);
    for (size_t i = 0; i < problem_.operators.size(); ++i) {
      const Operator& o = problem_.operators[i];
      add(o.workspace, op(i) + ", workspace");
      if (o.cost < Nanos(0)) fail(op(i) + ": negative cost");
      for (const StorageId id : o.inputs) {
        if (!is_storage(id)) fail(op(i) + ": input " + std::to_string(id) + " does not exist");
      }
      for (const StorageId id : o.outputs) {
        if (!is_storage(id)) fail(op(i) + ": output " + std::to_string(id) + " does not exist");
        if (problem_.storages[id].at_start && problem_.storages[id].alias_of == kNone) {
          fail(op(i) + ": writes " + storage(id) + ", which exists at the start");
        }
        if (writer_[id] != kNone) {
          fail(op(i) + ": writes " + storage(id) + ", as " + op(writer_[id]) + " does");
        }
        writer_[id] = static_cast<OpId>(i);
      }
      for (const OpId id : o.after) {
        if (!is_op(id))
          fail(op(i) + ": runs after " + std::to_string(id) + ", which does not exist");
      }
    }
    for (size_t i = 0; i < problem_.storages.size(); ++i) {
      if (writer_[i] == kNone && !problem_.storages[i].at_start) {
        fail(storage(i) + ": neither written nor present at the start");
      }
    }
  }

  void check_in_place() {
    for (const InPlace& pair : problem_.may_be_in_place) {
      const std::string where = "in-place pair (" + std::to_string(pair.op) + ", " +
                                std::to_string(pair.input) + ", " +
                                std::to_string(pair.output) + ")";
      if (!is_op(pair.op) || !is_storage(pair.input) || !is_storage(pair.output)) {
        fail(where + ": does not exist");
      }
      const Operator& o = problem_.operators[pair.op];
      if (std::find(o.inputs.begin(), o.inputs.end(), pair.input) == o.inputs.end() ||
          std::find(o.outputs.begin(), o.outputs.end(), pair.output) == o.outputs.end()) {
        fail(where + ": not an input and an output of " + op(pair.op));
      }
      if (problem_.storages[pair.input].alias_of != kNone ||
          problem_.storages[pair.output].alias_of != kNone) {
        fail(where + ": the input or the output is an alias");
      }
    }
  }

  void check_cycles() const {
    const std::vector<std::vector<OpId>> before = predecessors(problem_);
    std::vector<std::vector<OpId>> next(before.size());
    std::vector<size_t> waits(before.size());
    std::vector<OpId> ready;
    for (size_t i = 0; i < before.size(); ++i) {
      waits[i] = before[i].size();
      for (const OpId p : before[i]) next[p].push_back(static_cast<OpId>(i));
      if (waits[i] == 0) ready.push_back(static_cast<OpId>(i));
    }
    size_t done = 0;
    while (!ready.empty()) {
      const OpId i = ready.back();
      ready.pop_back();
      ++done;
      for (const OpId n : next[i]) {
        if (--waits[n] == 0) ready.push_back(n);
      }
    }
    if (done == before.size()) return;
    // Walks back along waiting operators. That ends in a cycle, which is reached after as many
    // steps as there are operators.
    const auto waiting = [&](OpId i) { return waits[i] > 0; };
    OpId at = 0;
    while (!waiting(at)) ++at;
    for (size_t step = 0; step < before.size(); ++step) {
      at = *std::find_if(before[at].begin(), before[at].end(), waiting);
    }
    fail(op(at) + ": is part of a cycle");
  }

  const Problem& problem_;
  std::vector<OpId> writer_;
  int64_t sum_ = 0;
};

}  // namespace

void check_problem(const Problem& problem) { Checker(problem).run(); }

std::vector<std::vector<OpId>> predecessors(const Problem& problem) {
  std::vector<OpId> writer(problem.storages.size(), kNone);
  for (size_t i = 0; i < problem.operators.size(); ++i) {
    for (const StorageId id : problem.operators[i].outputs) writer[id] = static_cast<OpId>(i);
  }
  std::vector<std::vector<OpId>> result(problem.operators.size());
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = problem.operators[i].after;
    for (const StorageId id : problem.operators[i].inputs) {
      if (writer[id] != kNone) result[i].push_back(writer[id]);
    }
    // An alias needs the storage that it lies in.
    for (const StorageId id : problem.operators[i].outputs) {
      const OpId before = writer[problem.root(id)];
      if (before != kNone && before != static_cast<OpId>(i)) result[i].push_back(before);
    }
    std::sort(result[i].begin(), result[i].end());
    result[i].erase(std::unique(result[i].begin(), result[i].end()), result[i].end());
  }
  return result;
}

}  // namespace tidemark::planner
