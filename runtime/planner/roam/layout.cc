#include "runtime/planner/roam/layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "runtime/core/errors.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/roam/parallel.h"

namespace tidemark::planner::roam {
namespace {

class Concatenation {
 public:
  Concatenation(const std::vector<Buffer>& buffers, const Timeline& timeline,
                const LayoutLeafSolver& solver, const ConcatenationOptions& options)
      : buffers_(buffers),
        timeline_(timeline),
        solver_(solver),
        options_(options),
        offsets_(buffers.size()),
        activation_(buffers.size(), false),
        members_(timeline.leaves) {}

  Offsets run() {
    const Bytes resident = assign();
    const Stopwatch watch(options_.limits);
    std::vector<Bytes> heights(members_.size()), activations(members_.size());
    run_parallel(members_.size(), options_.threads,
                 [&](size_t leaf) { solve(leaf, watch, heights[leaf], activations[leaf]); });
    // The outermost leaf is the last, and its activations live longest.
    Bytes base = resident;
    for (size_t leaf = members_.size(); leaf-- > 0;) {
      for (const size_t i : members_[leaf]) offsets_[i] = offsets_[i] + base;
      base += options_.concatenate ? activations[leaf] : heights[leaf];
    }
    settle_conflicts();
    return std::move(offsets_);
  }

 private:
  // Returns the bytes of buffers that live throughout.
  Bytes assign() {
    const auto end = static_cast<int64_t>(timeline_.leaf.size());
    Offset top;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& b = buffers_[i];
      if (is_empty(b)) continue;
      if (b.begin == 0 && b.end == end) {
        offsets_[i] = top;
        top = top + b.size;
        resident_.push_back(i);
        continue;
      }
      const bool made_forward = timeline_.is_forward[b.begin];
      activation_[i] = made_forward && !timeline_.is_forward[b.end - 1];
      const bool where_freed = options_.owners && made_forward;
      members_[timeline_.leaf[where_freed ? b.end - 1 : b.begin]].push_back(i);
    }
    return top - Offset();
  }

  void solve(size_t leaf, const Stopwatch& watch, Bytes& height_of, Bytes& activations) {
    LayoutLeaf problem;
    for (const size_t i : members_[leaf]) {
      problem.buffers.push_back(buffers_[i]);
      if (activation_[i]) activations += buffers_[i].size;
    }
    for (const size_t i : members_[leaf]) {
      problem.ceilings.push_back(
          options_.activations_below && activation_[i] ? activations : Bytes(INT64_MAX));
    }
    Limits limits = options_.limits;
    limits.seconds = std::max(0.0, watch.left());
    const Offsets offsets = solver_(problem, limits);
    TIDEMARK_CHECK(offsets.size() == problem.buffers.size(), "not one offset per buffer");
    for (size_t k = 0; k < offsets.size(); ++k) {
      TIDEMARK_CHECK(offsets[k] >= Offset(), "an offset below zero");
      offsets_[members_[leaf][k]] = offsets[k];
    }
    height_of = height(problem.buffers, offsets);
  }

  // Keeps the places of as many buffers as it can, activations first, and places the rest anew.
  void settle_conflicts() {
    std::vector<size_t> order;
    for (const auto& leaf : members_) order.insert(order.end(), leaf.begin(), leaf.end());
    const auto rank = [&](size_t i) {
      const Buffer& b = buffers_[i];
      return std::tuple(!activation_[i], -b.size.count(), b.begin - b.end, i);
    };
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return rank(a) < rank(b); });
    const std::vector<bool> suspect = find_suspects();
    std::vector<bool> placed(buffers_.size(), false);
    std::vector<size_t> kept = resident_, waiting;
    for (const size_t i : order) {
      if (!suspect[i]) kept.push_back(i);
    }
    for (const size_t i : kept) placed[i] = true;
    std::vector<size_t> settled;  // suspects that keep their places
    for (const size_t i : order) {
      if (!suspect[i]) continue;
      const bool clashes =
          std::any_of(settled.begin(), settled.end(), [&](size_t j) { return overlap(i, j); });
      if (clashes) {
        waiting.push_back(i);
      } else {
        settled.push_back(i);
        placed[i] = true;
      }
    }
    place_around(buffers_, waiting, placed, offsets_);
  }

  bool overlap(size_t i, size_t j) const {
    const Buffer &a = buffers_[i], &b = buffers_[j];
    return a.begin < b.end && b.begin < a.end && offsets_[i] < offsets_[j] + b.size &&
           offsets_[j] < offsets_[i] + a.size;
  }

  // Finds buffers that share a byte with another at some time, by a sweep over time.
  std::vector<bool> find_suspects() const {
    std::vector<bool> suspect(buffers_.size(), false);
    std::vector<size_t> by_begin;
    for (const auto& leaf : members_) by_begin.insert(by_begin.end(), leaf.begin(), leaf.end());
    std::sort(by_begin.begin(), by_begin.end(), [&](size_t a, size_t b) {
      return std::pair(buffers_[a].begin, a) < std::pair(buffers_[b].begin, b);
    });
    std::vector<size_t> live;
    for (const size_t i : by_begin) {
      std::erase_if(live, [&](size_t j) { return buffers_[j].end <= buffers_[i].begin; });
      for (const size_t j : live) {
        if (overlap(i, j)) suspect[i] = suspect[j] = true;
      }
      live.push_back(i);
    }
    return suspect;
  }

  const std::vector<Buffer>& buffers_;
  const Timeline& timeline_;
  const LayoutLeafSolver& solver_;
  const ConcatenationOptions& options_;
  Offsets offsets_;
  std::vector<bool> activation_;
  std::vector<size_t> resident_;
  std::vector<std::vector<size_t>> members_;  // per leaf
};

}  // namespace

Offsets lay_out(const std::vector<Buffer>& buffers, const Timeline& timeline,
                const LayoutLeafSolver& solver, const ConcatenationOptions& options) {
  return Concatenation(buffers, timeline, solver, options).run();
}

}  // namespace tidemark::planner::roam
