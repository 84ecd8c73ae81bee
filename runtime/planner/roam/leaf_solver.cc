#include "runtime/planner/roam/leaf_solver.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/planner/layout/exact_search.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/lowest_place.h"
#include "runtime/planner/order/order.h"

namespace tidemark::planner::roam {
namespace {

std::vector<OpId> order_leaf(const Problem& leaf, const Limits& limits) {
  return plan_order(leaf, {limits}).order;
}

class LayoutSearch {
 public:
  LayoutSearch(const LayoutLeaf& leaf, const Limits& limits)
      : leaf_(leaf), limits_(limits), watch_(limits) {
    for (size_t i = 0; i < leaf.buffers.size(); ++i) {
      if (is_empty(leaf.buffers[i])) continue;
      kept_.push_back(i);
      waiting_.push_back(leaf.buffers[i]);
      ceilings_.push_back(leaf.ceilings[i]);
    }
  }

  Offsets run() {
    Offsets best = stacked(leaf_);
    Bytes top = height(leaf_.buffers, best), low = max_load(leaf_.buffers);
    if (top == low || waiting_.size() > ExactSearch::kMaxBuffers) return best;
    ExactSearch search(waiting_, {.ceilings = ceilings_});
    // Tries the load first, then half-way between a height that fails, or seems to, and one
    // that fits. Runs grow until the nodes are used up.
    for (int64_t length = kFirstRun; top > low; length *= 4) {
      Bytes aim = low, unlikely = low;
      while (aim < top) {
        const Verdict verdict = attempt(search, aim, length);
        if (verdict == Verdict::kFits) {
          best = widened(search.offsets());
          top = height(leaf_.buffers, best);
        } else {
          if (verdict == Verdict::kDoesNotFit) low = aim + Bytes(1);
          unlikely = aim + Bytes(1);
        }
        if (search.nodes() >= limits_.nodes || watch_.expired()) return best;
        if (top - unlikely <= Bytes(unlikely.count() / kSteps)) break;
        aim = unlikely + Bytes((top - unlikely).count() / 2);
      }
      if (top - low <= Bytes(low.count() / kSteps)) break;
    }
    return best;
  }

 private:
  static constexpr int64_t kFirstRun = 1000;
  static constexpr int64_t kSteps = 4096;

  Verdict attempt(ExactSearch& search, Bytes aim, int64_t length) {
    for (const Walk walk : {Walk::kTight, Walk::kLowest}) {
      for (const Rank rank : {Rank::kLoadLifetime, Rank::kArea}) {
        const int64_t nodes = std::min(length, limits_.nodes - search.nodes());
        const Verdict verdict = search.run(aim, walk, rank, 0, nodes, watch_);
        if (verdict != Verdict::kUnknown) return verdict;
      }
    }
    return Verdict::kUnknown;
  }

  Offsets widened(const Offsets& offsets) const {
    Offsets result(leaf_.buffers.size());
    for (size_t k = 0; k < kept_.size(); ++k) result[kept_[k]] = offsets[k];
    return result;
  }

  const LayoutLeaf& leaf_;
  const Limits& limits_;
  Stopwatch watch_;
  std::vector<size_t> kept_;
  std::vector<Buffer> waiting_;
  std::vector<Bytes> ceilings_;
};

}  // namespace

// Stacks buffers whose ceiling is below the rest first; then the others by size.
Offsets stacked(const LayoutLeaf& leaf) {
  const std::vector<Buffer>& buffers = leaf.buffers;
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rank = [&](size_t i) {
    const int64_t life = buffers[i].end - buffers[i].begin, size = buffers[i].size.count();
    const bool low = leaf.ceilings[i] < Bytes(INT64_MAX);
    return std::tuple(!low, low ? -life : -size, low ? -size : -life, i);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  Offsets offsets(buffers.size());
  std::vector<bool> placed(buffers.size(), false);
  place_around(buffers, order, placed, offsets);
  return offsets;
}

void place_around(const std::vector<Buffer>& buffers, const std::vector<size_t>& waiting,
                  std::vector<bool>& placed, Offsets& offsets) {
  std::vector<size_t> there;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (placed[i] && !is_empty(buffers[i])) there.push_back(i);
  }
  std::vector<TakenSpace> taken;
  for (const size_t i : waiting) {
    placed[i] = true;
    if (is_empty(buffers[i])) continue;
    taken.clear();
    for (const size_t j : there) {
      if (buffers[j].begin < buffers[i].end && buffers[i].begin < buffers[j].end) {
        taken.push_back({offsets[j], offsets[j] + buffers[j].size});
      }
    }
    offsets[i] = lowest_place(taken, buffers[i].size);
    there.push_back(i);
  }
}

LeafSolvers exact_leaves() {
  LeafSolvers leaves;
  leaves.order = order_leaf;
  leaves.layout = [](const LayoutLeaf& leaf, const Limits& limits) {
    return LayoutSearch(leaf, limits).run();
  };
  return leaves;
}

}  // namespace tidemark::planner::roam
