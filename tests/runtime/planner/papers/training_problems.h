// Small rematerialisation problems with a forward and a backward pass, and the optimum of
// MONeT's own decisions on them by enumeration of its sets, without its rows.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "runtime/planner/papers/remat/run_sequence.h"
#include "runtime/planner/papers/remat/two_pass.h"
#include "tests/runtime/planner/remat/small_problems.h"

namespace tidemark::planner::remat {

struct TrainingFeatures {
  bool skips = true;       // forward nodes that also read an older value
  bool workspace = true;   // and variants that trade it for time
  bool in_place = true;    // forward variants that overwrite their input
  bool sign_bits = true;   // riders that backward nodes may read in place of a value
  bool choices = true;     // backward variants that read the input or the output
  bool later_runs = true;  // variants of later runs only; nodes that run once; added bytes
};

inline TrainingFeatures only(std::initializer_list<bool TrainingFeatures::*> on) {
  TrainingFeatures features{false, false, false, false, false, false};
  for (bool TrainingFeatures::*const feature : on) features.*feature = true;
  return features;
}
inline TrainingFeatures plain() { return only({&TrainingFeatures::skips}); }

// A chain of `count` forward nodes, the gradient of the last, and a backward node for each
// other.
inline Problem random_training(uint64_t seed, int count, const TrainingFeatures& features) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) {
    return static_cast<int>(random() % static_cast<uint64_t>(n));
  };
  Problem problem;
  problem.fixed_bytes = 1;
  std::vector<NodeId> forward, bits;
  for (int f = 0; f < count; ++f) {
    std::vector<NodeId> inputs;
    if (f > 0) inputs.push_back(forward.back());
    if (features.skips && f > 1 && below(3) == 0) {
      inputs.insert(inputs.begin(), forward[static_cast<size_t>(below(f - 1))]);
    }
    Node node = make_node(1 + below(6), 1 + below(5), inputs);
    const Variant base = node.variants[0];
    if (features.workspace && below(2) == 0) {
      node.variants[0].workspace = 1 + below(4);
      node.variants.push_back(base);
      node.variants[1].time += 1 + below(3);
    } else if (features.in_place && f > 0 && below(2) == 0) {
      node.variants.push_back(base);
      node.variants[1].overwrites = forward.back();
      node.variants[1].workspace = -std::min(node.bytes, problem.nodes[forward.back()].bytes);
    } else if (features.later_runs && below(3) == 0) {
      node.variants[0].when = When::kFirst;
      node.variants.push_back(base);
      node.variants[1].when = When::kAgain;
      node.variants[1].time = below(3);
    } else if (features.later_runs && below(4) == 0) {
      node.once = true;
    }
    forward.push_back(problem.size());
    bits.push_back(kNoNode);
    problem.nodes.push_back(node);
    if (features.sign_bits && f + 1 < count && below(2) == 0) {
      Node rider = make_node(below(2), 1, {forward.back()});
      rider.rider_of = forward.back();
      const bool has_two = problem.nodes[forward.back()].variants.size() > 1;
      if (has_two && problem.nodes[forward.back()].variants[1].when == When::kAny &&
          below(2) == 0) {
        rider.variants[0].with = {{1}};
      }
      bits.back() = problem.size();
      problem.nodes.push_back(rider);
    }
  }
  NodeId gradient = problem.size();
  problem.nodes.push_back(make_node(1, 1 + below(3), {forward.back()}));
  for (int f = count - 2; f >= 0; --f) {
    Node node =
        make_node(1 + below(6), 1 + below(4), {forward[static_cast<size_t>(f)], gradient});
    // Reads a value and what a run in place would overwrite for it.
    if (features.in_place && f > 0 && below(3) == 0) {
      node.variants[0].inputs.insert(node.variants[0].inputs.begin(),
                                     forward[static_cast<size_t>(f) - 1]);
    }
    const Variant base = node.variants[0];
    if (features.choices && f > 0 && below(2) == 0) {
      node.variants.push_back(base);
      node.variants[1].inputs = {forward[static_cast<size_t>(f) - 1], gradient};
      node.variants[1].time += below(2);
    }
    if (bits[static_cast<size_t>(f)] != kNoNode) {
      node.variants.push_back(base);
      node.variants.back().inputs = {bits[static_cast<size_t>(f)], gradient};
    }
    if (features.later_runs && below(4) == 0) {
      node.once = true;
      node.adds_fixed = 1 + below(2);
    }
    gradient = problem.size();
    problem.nodes.push_back(node);
  }
  problem.base_time = 0;
  for (const Node& node : problem.nodes) problem.base_time += node.variants[0].time;
  return problem;
}

// The peak of the listed order with the first variants, riders left out.
inline int64_t keep_all(const Problem& problem) {
  std::vector<PlannedRun> runs;
  for (NodeId i = 0; i < problem.size(); ++i) {
    if (problem.nodes[i].rider_of == kNoNode) runs.push_back({i, 0});
  }
  return schedule_runs(problem, runs).peak;
}

// Enumerates what MONeT decides: implementations, stored sets, recomputations.
class MonetByEnumeration {
 public:
  MonetByEnumeration(const TwoPass& passes, int64_t budget) : p_(passes), budget_(budget) {}

  // Infinite if nothing fits.
  double least_time() {
    choice_.assign(static_cast<size_t>(p_.forward), kNotRun);
    forward_pass(0, 0);
    for (size_t t = 1; t < p_.stages.size(); ++t) {
      const auto before = std::exchange(least_, {});
      for (const auto& [old, time] : before) {
        choice_.assign(static_cast<size_t>(p_.forward), kNotRun);
        recompute(t, 0, old, time);
      }
    }
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [stored, time] : least_) least = std::min(least, time);
    return least;
  }

 private:
  static constexpr int kNotRun = -1;
  using Set = uint32_t;
  static bool has(Set set, int i) { return (set >> i & 1) != 0; }
  static Set set_of(const std::vector<int>& values) {
    Set set = 0;
    for (const int i : values) set |= 1U << i;
    return set;
  }
  int64_t bytes(Set set) const {
    int64_t sum = 0;
    for (int i = 0; i < p_.forward; ++i) sum += has(set, i) ? p_.steps[i].bytes : 0;
    return sum;
  }
  const std::vector<Way>& ways(size_t t, int i) const {
    return t == 0 ? p_.steps[i].first : p_.steps[i].again;
  }
  const Way* chosen(size_t t, int i) const {
    return choice_[i] == kNotRun ? nullptr : &ways(t, i)[static_cast<size_t>(choice_[i])];
  }
  bool may_run(size_t t, int i) const {
    return t == 0 || (p_.stages[t].reads_forward && p_.stages[t].may_need(i) &&
                      p_.steps[i].may_run_again);
  }
  // Values that forward i or a later one may read, if it may run in the stage.
  Set local(size_t t, int i) const {
    Set set = 0;
    for (int u = i; u < p_.forward; ++u) {
      if (!may_run(t, u)) continue;
      for (const Way& way : ways(t, u)) set |= set_of(way.forward);
    }
    return set & ((1U << i) - 1);
  }
  Set ran() const {
    Set set = 0;
    for (int i = 0; i < p_.forward; ++i) set |= choice_[i] != kNotRun ? 1U << i : 0;
    return set;
  }
  Set overwritten(size_t t) const {
    Set set = 0;
    for (int i = 0; i < p_.forward; ++i) {
      if (const Way* way = chosen(t, i); way && way->overwrites >= 0)
        set |= 1U << way->overwrites;
    }
    return set;
  }

  bool runs_are_possible(size_t t, Set old) const {
    const Set kept = ran() & ~overwritten(t);
    for (int i = 0; i < p_.forward; ++i) {
      const Way* const way = chosen(t, i);
      if (!way) continue;
      for (const int j : way->forward) {
        const bool here = j == way->overwrites || t == 0 ? has(ran(), j) : has(kept, j);
        if (!has(old, j) && !here) return false;
      }
      for (int u = i + 1; way->overwrites >= 0 && u < p_.forward; ++u) {
        if (chosen(t, u) && has(set_of(chosen(t, u)->forward), way->overwrites)) return false;
      }
      const int parent = p_.steps[i].rides_on;
      if (parent < 0) continue;
      const Way* const of_parent = chosen(t, parent);
      if (!of_parent ||
          std::count(way->with.begin(), way->with.end(), of_parent->variant) == 0) {
        return false;
      }
    }
    return true;
  }

  void forward_pass(int i, double time) {
    if (i < p_.forward) {
      if (!p_.steps[i].must_run) forward_pass(i + 1, time);
      for (size_t w = 0; w < p_.steps[i].first.size(); ++w) {
        choice_[i] = static_cast<int>(w);
        forward_pass(i + 1, time + p_.steps[i].first[w].time);
        choice_[i] = kNotRun;
      }
      return;
    }
    if (!runs_are_possible(0, 0)) return;
    const Set may_store = ran() & ~overwritten(0);
    for (Set stored = may_store;; stored = (stored - 1) & may_store) {
      bool fits = true;
      for (int k = 0; k < p_.forward; ++k) {
        if (!chosen(0, k)) continue;
        const Set below = (1U << k) - 1;
        fits = fits && p_.steps[k].fixed + p_.steps[k].bytes + chosen(0, k)->workspace +
                               bytes((local(0, k) & ran()) | (stored & below)) <=
                           budget_;
      }
      if (fits) offer(stored, time);
      if (stored == 0) break;
    }
  }

  void recompute(size_t t, int i, Set old, double time) {
    if (i == p_.forward) {
      if (runs_are_possible(t, old)) store(t, old, time);
      return;
    }
    recompute(t, i + 1, old, time);
    if (!may_run(t, i)) return;
    for (size_t w = 0; w < p_.steps[i].again.size(); ++w) {
      choice_[i] = static_cast<int>(w);
      recompute(t, i + 1, old, time + p_.steps[i].again[w].time);
      choice_[i] = kNotRun;
    }
  }

  void store(size_t t, Set old, double time) {
    const Set kept = ran() & ~overwritten(t);
    const Set may_store = (old & ~overwritten(t)) | kept;
    for (Set stored = may_store;; stored = (stored - 1) & may_store) {
      backward(t, p_.stages[t].first, old, stored, kept, time);
      if (stored == 0) break;
    }
  }

  void backward(size_t t, int k, Set old, Set stored, Set kept, double time) {
    if (k == p_.stages[t].end) {
      offer(stored, time);
      return;
    }
    const Step& step = p_.steps[k];
    for (const Way& way : step.first) {
      const Set read = set_of(way.forward);
      if ((read & ~(stored | kept)) != 0) continue;
      if (step.fixed + step.bytes + p_.gradients[k] + way.workspace + bytes(read | stored) >
          budget_) {
        continue;
      }
      bool fits = true;
      for (int i = 0; i < p_.forward; ++i) {
        const Way* const run = chosen(t, i);
        if (!run) continue;
        const Set below = (1U << i) - 1;
        const Set above = ~below & ~(1U << i);
        fits = fits && step.fixed_before + p_.stages[t].gradients + p_.steps[i].bytes +
                               run->workspace +
                               bytes(((read | stored) & below) | local(t, i) | (old & above)) <=
                           budget_;
      }
      if (fits) backward(t, k + 1, old, stored, kept, time + way.time);
    }
  }

  void offer(Set stored, double time) {
    const auto [at, is_new] = least_.emplace(stored, time);
    if (!is_new) at->second = std::min(at->second, time);
  }

  const TwoPass& p_;
  const int64_t budget_;
  std::vector<int> choice_;
  std::map<Set, double> least_;
};

}  // namespace tidemark::planner::remat
