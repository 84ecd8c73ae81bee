#include "runtime/replay/released_at_once.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace tidemark {
namespace {

using Kind = MemoryTrace::Kind;

class AtOnce {
 public:
  AtOnce(const StepTrace& graph, MemoryTrace trace)
      : trace_(std::move(trace)),
        count_(static_cast<int64_t>(trace_.events.size())),
        end_of_call_(trace_.events.size() + 1, count_),
        moved_(trace_.events.size(), false),
        call_of_(trace_.was_there.size(), MemoryTrace::kScratch),
        runs_(graph.ops.size()) {
    for (int64_t e = count_; e-- > 0;) {
      end_of_call_[at(e)] = event(e).kind == Kind::kEndOfCall ? e : end_of_call_[at(e) + 1];
    }
    for (uint32_t op = 0; op < graph.ops.size(); ++op) {
      for (const uint32_t output : graph.ops[op].outputs) call_of_[output] = op;
    }
    for (int64_t e = 0; e < count_; ++e) {
      if (event(e).kind == Kind::kBlock && is_output(event(e).item)) {
        runs_[call_of_[event(e).item]].push_back(e);
      }
    }
  }

  MemoryTrace run() {
    leave_before_the_end();
    for (MemoryTrace::Block& block : trace_.blocks) {
      if (block.release < 0 || moved_[at(block.release)]) continue;
      const int64_t copied = block.copied == block.release ? -1 : block.copied;
      const int64_t after =
          std::max({block.begin + 1, block.used, copied + 1, last_run_before(block)});
      const int64_t place = after == 0 ? 0 : end_of_call_[at(after)];
      if (place < block.release) move(block, place, event(block.release));
    }
    return in_new_order();
  }

 private:
  struct Moved {
    int64_t before;  // the event that it comes before
    MemoryTrace::Event event;
    size_t block;
  };

  static size_t at(int64_t e) { return static_cast<size_t>(e); }
  const MemoryTrace::Event& event(int64_t e) const { return trace_.events[at(e)]; }
  bool is_output(uint32_t item) const {
    return item < call_of_.size() && call_of_[item] != MemoryTrace::kScratch;
  }

  void move(const MemoryTrace::Block& block, int64_t before, const MemoryTrace::Event& event) {
    if (block.release >= 0) moved_[at(block.release)] = true;
    moves_.push_back({before, event, static_cast<size_t>(&block - trace_.blocks.data())});
  }

  // What is missing when its call runs again comes back with its siblings: the last time that
  // the call ran before the release has to be before it still. In the midst of a run it stays.
  int64_t last_run_before(const MemoryTrace::Block& block) const {
    if (!is_output(block.item)) return -1;
    const std::vector<int64_t>& runs = runs_[call_of_[block.item]];
    const auto next =
        std::lower_bound(runs.begin(), runs.end(), end_of_call_[at(block.release)]);
    return next == runs.begin() ? -1 : *std::prev(next) + 1;
  }

  void leave_before_the_end() {
    std::vector<bool> stays(trace_.was_there.size(), false);
    std::vector<MemoryTrace::Block> kept;
    std::vector<Offset> before;
    size_t first = 0;
    for (; first < trace_.blocks.size() && trace_.blocks[first].begin < 0; ++first) {
      const MemoryTrace::Block& block = trace_.blocks[first];
      const bool goes_unused = block.used < 0 && block.release >= 0 && block.copied >= 0;
      if (goes_unused) {
        moved_[at(block.release)] = moved_[at(block.copied)] = true;
        continue;
      }
      stays[block.item] = true;
      kept.push_back(block);
      before.push_back(trace_.before[first]);
    }
    kept.insert(kept.end(), trace_.blocks.begin() + static_cast<std::ptrdiff_t>(first),
                trace_.blocks.end());
    trace_.blocks = std::move(kept);
    trace_.before = std::move(before);
    for (MemoryTrace::Block& block : trace_.blocks) {
      const bool there = block.item < stays.size() && trace_.was_there[block.item];
      if (!there || stays[block.item] || block.end < count_ || block.release >= 0) continue;
      const int64_t place = end_of_call_[at(std::max(block.begin + 1, block.used))];
      if (place < count_) move(block, place, {Kind::kOffload, block.item});
    }
  }

  MemoryTrace in_new_order() {
    std::stable_sort(moves_.begin(), moves_.end(),
                     [](const Moved& a, const Moved& b) { return a.before < b.before; });
    MemoryTrace result;
    result.was_there = trace_.was_there;
    result.before = trace_.before;
    std::vector<int64_t> now_at(trace_.events.size() + 1);
    std::vector<int64_t> released(trace_.blocks.size(), -1);
    const auto size = [&] { return static_cast<int64_t>(result.events.size()); };
    auto next = moves_.begin();
    for (int64_t e = 0; e < count_; ++e) {
      for (; next != moves_.end() && next->before == e; ++next) {
        released[next->block] = size();
        result.events.push_back(next->event);
      }
      now_at[at(e)] = size();
      if (!moved_[at(e)]) result.events.push_back(event(e));
    }
    now_at[at(count_)] = size();
    const auto now = [&](int64_t e) { return e < 0 ? e : now_at[at(e)]; };
    for (size_t b = 0; b < trace_.blocks.size(); ++b) {
      MemoryTrace::Block block = trace_.blocks[b];
      const bool copied_by_release = block.copied == block.release;
      block.release = released[b] >= 0 ? released[b] : now(block.release);
      block.copied = copied_by_release ? block.release : now(block.copied);
      block.end = block.release >= 0 ? block.release + 1 : now(block.end);
      block.begin = now(block.begin);
      block.used = now(block.used);
      result.blocks.push_back(block);
    }
    return result;
  }

  MemoryTrace trace_;
  const int64_t count_;
  std::vector<int64_t> end_of_call_;  // the next, from each event on; none: count_
  std::vector<bool> moved_;           // events: they are not where they were, or not at all
  std::vector<uint32_t> call_of_;     // by item; kScratch: no call makes it
  std::vector<std::vector<int64_t>> runs_;  // of each call: events in which it took blocks
  std::vector<Moved> moves_;
};

}  // namespace

MemoryTrace released_at_once(const StepTrace& graph, MemoryTrace trace) {
  return AtOnce(graph, std::move(trace)).run();
}

}  // namespace tidemark
