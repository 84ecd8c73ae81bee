#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_set>

#include "runtime/planner/order/passes.h"

namespace tidemark::planner {
namespace {

constexpr size_t kMaxRememberedSets = 4 << 20;
constexpr int64_t kNodesPerClockCheck = 64;

}  // namespace

SearchEnd OrderSearch::run(int64_t budget, const std::vector<int>& prefer, int64_t node_limit,
                           const Stopwatch& watch) {
  struct Frame {
    size_t depth;                                         // length of the path at that time
    std::vector<std::tuple<int64_t, int, OpId>> choices;  // growth, preference
  };
  OrderState state(graph_);
  std::unordered_set<uint64_t> seen;
  std::vector<Frame> frames;
  const int64_t end = node_limit > INT64_MAX - nodes_ ? INT64_MAX : nodes_ + node_limit;

  // Runs the safe operators, then opens a frame with those that may run, best first.
  const auto open = [&](size_t depth) {
    for (bool again = true; again;) {
      again = false;
      OpId safe = kNone;
      for (const OpId op : state.ready()) {
        if (state.growth(op) > 0 || state.transient(op) > budget) continue;
        if (safe == kNone || prefer[op] < prefer[safe]) safe = op;
      }
      if (safe != kNone) {
        state.run(safe);
        again = true;
      }
    }
    Frame frame{depth, {}};
    if (!seen.insert(state.key()).second) {
      frames.push_back(std::move(frame));
      return;
    }
    if (seen.size() > kMaxRememberedSets) seen.clear();
    for (const OpId op : state.ready()) {
      if (state.transient(op) <= budget) frame.choices.emplace_back(0, 0, op);
    }
    // A heap, as usually only the best choice is needed.
    for (auto& [growth, rank, op] : frame.choices) growth = state.growth(op), rank = prefer[op];
    std::make_heap(frame.choices.begin(), frame.choices.end(), std::greater<>());
    frames.push_back(std::move(frame));
  };

  open(0);
  while (state.count() < graph_.size()) {
    if (++nodes_ >= end) return SearchEnd::kLimit;
    if (nodes_ % kNodesPerClockCheck == 0 && watch.expired()) return SearchEnd::kLimit;
    Frame& frame = frames.back();
    if (frame.choices.empty()) {
      while (state.count() > frame.depth) state.undo();
      frames.pop_back();
      if (frames.empty()) return SearchEnd::kExhausted;
      continue;
    }
    const size_t depth = state.count();
    std::pop_heap(frame.choices.begin(), frame.choices.end(), std::greater<>());
    const OpId op = std::get<2>(frame.choices.back());
    frame.choices.pop_back();
    state.run(op);
    open(depth);
  }
  order_ = state.path();
  return SearchEnd::kFound;
}

}  // namespace tidemark::planner
