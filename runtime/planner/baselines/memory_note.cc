#include <algorithm>
#include <map>

#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/order.h"

namespace tidemark::planner {
namespace {

class MemoryNote {
 public:
  MemoryNote(const Problem& problem, const MemoryNoteOptions& options)
      : problem_(problem), options_(options) {}

  Plan run() {
    Plan plan;
    plan.order = program_order(problem_);
    plan.placements = lifetimes(problem_, plan.order);
    block_.assign(plan.placements.size(), kNoBlock);
    placement_of_.assign(problem_.storages.size(), 0);
    workspace_of_.assign(problem_.op_count(), kNoBlock);
    for (size_t k = 0; k < plan.placements.size(); ++k) {
      const Placement& p = plan.placements[k];
      if (p.storage != kNone) placement_of_[p.storage] = k;
      if (p.workspace_of != kNone) workspace_of_[p.workspace_of] = k;
    }
    count_uses();
    pairs_.resize(problem_.op_count());
    if (options_.in_place) {
      for (const InPlace& pair : problem_.may_be_in_place) pairs_[pair.op].push_back(pair);
    }
    for (size_t i = 0; i < problem_.storages.size(); ++i) {
      if (problem_.root(static_cast<StorageId>(i)) == static_cast<StorageId>(i) && starts_[i] &&
          !is_idle(plan.placements[placement_of_[i]])) {
        block_[placement_of_[i]] = take(problem_.storages[i].size);
      }
    }
    for (const OpId op : plan.order) step(op, plan);
    place_side_by_side(plan, block_, size_);
    fill_figures(plan);
    return plan;
  }

 private:
  static bool is_idle(const Placement& p) { return p.begin == p.end; }

  // Counts the operators that still use each storage, plus one if it is needed at the end.
  void count_uses() {
    uses_.assign(problem_.storages.size(), 0);
    starts_.assign(problem_.storages.size(), false);
    for (size_t i = 0; i < problem_.storages.size(); ++i) {
      const StorageId root = problem_.root(static_cast<StorageId>(i));
      if (problem_.storages[i].at_end) ++uses_[root];
      if (problem_.storages[i].at_start) starts_[root] = true;
    }
    for (size_t i = 0; i < problem_.op_count(); ++i) {
      for (const StorageId root : touched(static_cast<OpId>(i))) ++uses_[root];
    }
  }

  std::vector<StorageId> touched(OpId op) const {
    std::vector<StorageId> roots;
    for (const StorageId s : problem_.operators[op].inputs) roots.push_back(problem_.root(s));
    for (const StorageId s : problem_.operators[op].outputs) roots.push_back(problem_.root(s));
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    return roots;
  }

  size_t take(Bytes size) {
    if (options_.sharing && size > Bytes(0)) {
      // Takes the smallest block that holds `size`, or else the largest, which grows; both
      // within the match range.
      auto found = box_.lower_bound(size);
      const auto below = found == box_.begin() ? box_.end() : std::prev(found);
      if (found == box_.end() || found->first.count() / options_.match_range > size.count()) {
        found = below;
        if (found != box_.end() && found->first.count() < size.count() / options_.match_range) {
          found = box_.end();
        }
      }
      if (found != box_.end()) {
        const size_t block = found->second;
        box_.erase(found);
        size_[block] = std::max(size_[block], size);
        return block;
      }
    }
    size_.push_back(size);
    return size_.size() - 1;
  }
  void recycle(size_t block) {
    if (options_.sharing && size_[block] > Bytes(0)) box_.emplace(size_[block], block);
  }

  // The input whose block `output` may take, or kNone.
  StorageId donor(StorageId output, const std::vector<InPlace>& pairs,
                  const std::vector<StorageId>& given) const {
    for (const InPlace& pair : pairs) {
      if (pair.output == output && uses_[pair.input] == 1 &&
          problem_.storages[pair.input].size == problem_.storages[output].size &&
          std::find(given.begin(), given.end(), pair.input) == given.end()) {
        return pair.input;
      }
    }
    return kNone;
  }

  void step(OpId op, Plan& plan) {
    std::vector<StorageId> given;
    for (const StorageId s : problem_.operators[op].outputs) {
      if (problem_.root(s) != s) continue;
      const StorageId input = donor(s, pairs_[op], given);
      if (input != kNone) {
        block_[placement_of_[s]] = block_[placement_of_[input]];
        plan.in_place.push_back({op, input, s});
        given.push_back(input);
      } else {
        block_[placement_of_[s]] = take(problem_.storages[s].size);
      }
    }
    if (workspace_of_[op] != kNoBlock) {
      const size_t block = take(problem_.operators[op].workspace);
      block_[workspace_of_[op]] = block;
      recycle(block);
    }
    for (const StorageId root : touched(op)) {
      if (--uses_[root] > 0) continue;
      if (std::find(given.begin(), given.end(), root) == given.end()) {
        recycle(block_[placement_of_[root]]);
      }
    }
  }

  const Problem& problem_;
  const MemoryNoteOptions options_;
  std::vector<std::vector<InPlace>> pairs_;  // per operator
  std::vector<int> uses_;
  std::vector<bool> starts_;
  std::vector<size_t> placement_of_, workspace_of_;
  std::vector<size_t> block_;  // per placement
  std::vector<Bytes> size_;    // per block
  std::multimap<Bytes, size_t> box_;
};

}  // namespace

void place_side_by_side(Plan& plan, const std::vector<size_t>& block,
                        const std::vector<Bytes>& size) {
  std::vector<Offset> start(size.size());
  Offset end;
  for (size_t b = 0; b < size.size(); ++b) {
    start[b] = end;
    end = end + size[b];
  }
  for (size_t k = 0; k < plan.placements.size(); ++k) {
    if (block[k] != kNoBlock) plan.placements[k].offset = start[block[k]];
  }
}

Plan memory_note(const Problem& problem, const MemoryNoteOptions& options) {
  return MemoryNote(problem, options).run();
}

}  // namespace tidemark::planner
