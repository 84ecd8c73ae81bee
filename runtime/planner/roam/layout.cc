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
    TimeShares shares(Stopwatch(options_.limits), members_.size(), options_.threads,
                      options_.divide_time);
    std::vector<Bytes> heights(members_.size()), activations(members_.size());
    run_parallel(members_.size(), options_.threads,
                 [&](size_t leaf) { solve(leaf, shares, heights[leaf], activations[leaf]); });
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

  void solve(size_t leaf, TimeShares& shares, Bytes& height_of, Bytes& activations) {
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
    limits.seconds = shares.next();
    const Offsets offsets = solver_(problem, limits);
    TIDEMARK_CHECK(offsets.size() == problem.buffers.size(), "not one offset per buffer");
    for (size_t k = 0; k < offsets.size(); ++k) {
      TIDEMARK_CHECK(offsets[k] >= Offset(), "an offset below zero");
      offsets_[members_[leaf][k]] = offsets[k];
    }
    height_of = height(problem.buffers, offsets);
  }

  // Of equals in the first key, the second decides.
  enum class Reassigned : uint8_t { kLargestLongest, kLongestLargest, kLargestShortest };

  // Buffers without a conflict keep their places. The others are settled in several ways, of
  // which the lowest layout is taken: the largest keep their places where they can, or all but
  // activations are placed anew.
  void settle_conflicts() {
    const std::vector<bool> suspect = find_suspects();
    std::vector<size_t> suspects, sure = resident_;
    for (const auto& leaf : members_) {
      for (const size_t i : leaf) (suspect[i] ? suspects : sure).push_back(i);
    }
    if (suspects.empty()) return;
    const Bytes load = max_load(buffers_);
    const Offsets concatenated = std::move(offsets_);
    Bytes lowest(INT64_MAX);
    for (const auto& [first, keep] : {std::pair(Reassigned::kLargestLongest, true),
                                      {Reassigned::kLargestLongest, false},
                                      {Reassigned::kLongestLargest, false},
                                      {Reassigned::kLargestShortest, false}}) {
      if (lowest == load) break;
      Offsets offsets = settle(concatenated, suspects, sure, first, keep);
      const Bytes top = height(buffers_, offsets);
      if (top >= lowest) continue;
      lowest = top;
      offsets_ = std::move(offsets);
    }
  }

  Offsets settle(const Offsets& concatenated, std::vector<size_t> suspects,
                 const std::vector<size_t>& sure, Reassigned first, bool keep) const {
    const auto rank = [&](size_t i) {
      const int64_t size = -buffers_[i].size.count();
      const int64_t life = buffers_[i].begin - buffers_[i].end;
      switch (first) {
        case Reassigned::kLongestLargest: return std::tuple(!activation_[i], life, size, i);
        case Reassigned::kLargestShortest: return std::tuple(!activation_[i], size, -life, i);
        default: return std::tuple(!activation_[i], size, life, i);
      }
    };
    std::sort(suspects.begin(), suspects.end(),
              [&](size_t a, size_t b) { return rank(a) < rank(b); });
    std::vector<bool> placed(buffers_.size(), false);
    for (const size_t i : sure) placed[i] = true;
    std::vector<size_t> settled, waiting;
    for (const size_t i : suspects) {
      const bool stays = (keep || activation_[i]) &&
                         std::none_of(settled.begin(), settled.end(),
                                      [&](size_t j) { return overlap(concatenated, i, j); });
      (stays ? settled : waiting).push_back(i);
      if (stays) placed[i] = true;
    }
    Offsets offsets = concatenated;
    place_around(buffers_, waiting, placed, offsets);
    return offsets;
  }

  bool overlap(const Offsets& offsets, size_t i, size_t j) const {
    const Buffer &a = buffers_[i], &b = buffers_[j];
    return a.begin < b.end && b.begin < a.end && offsets[i] < offsets[j] + b.size &&
           offsets[j] < offsets[i] + a.size;
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
        if (overlap(offsets_, i, j)) suspect[i] = suspect[j] = true;
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
