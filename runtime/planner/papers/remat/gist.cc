// Gist (Jain et al., 2018): nothing runs again; what backward nodes read is stored in a smaller
// form. Of its techniques, as far as a problem's variants offer them:
// - Binarize: a backward node reads a rider (sign bits, pooling indices) in place of the value.
// - Inplace: a forward node overwrites its input where nothing reads that later.
// Left out: sparse storage, whose size depends on the data, and delayed precision reduction,
// which loses bits.
//
// Per forward value, all of its readers in the backward pass switch to variants that do not
// read it if fewer bytes are then stored. Other choices, such as algorithms of convolutions,
// stay at the first variant. Gist takes no budget.
#include <algorithm>
#include <set>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/papers/remat/remat_methods.h"
#include "runtime/planner/papers/remat/run_sequence.h"
#include "runtime/planner/papers/remat/two_pass.h"

namespace tidemark::planner::remat {
namespace {

class Encodings {
 public:
  explicit Encodings(const Problem& problem)
      : problem_(problem), passes_(read_two_pass(problem)) {
    for (int k = passes_.forward; k < passes_.size(); ++k) way_[k] = first_without_riders(k);
  }

  Schedule schedule() {
    for (bool is_better = true; is_better;) {
      is_better = false;
      for (int i = 0; i < passes_.forward; ++i) is_better |= encode(i);
    }
    DecodedRuns decoded = decode_runs(problem_, runs());
    if (!decoded.fault.empty()) {
      throw UsageError("[gist] one run of each node breaks a rule of the problem: " +
                       decoded.fault);
    }
    return std::move(decoded.schedule);
  }

 private:
  using Ways = std::vector<size_t>;  // by position

  bool reads(int k, size_t w, int i) const {
    const auto& forward = passes_.steps[k].first[w].forward;
    return std::binary_search(forward.begin(), forward.end(), i);
  }
  bool in_place(int k, size_t w) const { return passes_.steps[k].first[w].overwrites >= 0; }

  size_t first_without_riders(int k) const {
    const auto& ways = passes_.steps[k].first;
    for (size_t w = 0; w < ways.size(); ++w) {
      const auto& forward = ways[w].forward;
      const bool any = std::any_of(forward.begin(), forward.end(),
                                   [&](int u) { return passes_.steps[u].rides_on >= 0; });
      if (!any && !in_place(k, w)) return w;
    }
    return 0;
  }

  std::set<int> stored(const Ways& ways) const {
    std::set<int> values;
    for (int k = passes_.forward; k < passes_.size(); ++k) {
      const auto& forward = passes_.steps[k].first[ways[k]].forward;
      values.insert(forward.begin(), forward.end());
    }
    return values;
  }
  // At most one rider goes with a run of its node, by a variant that the node has.
  bool riders_agree(const std::set<int>& values) const {
    std::set<int> ridden;
    for (const int u : values) {
      if (passes_.steps[u].rides_on < 0) continue;
      if (!ridden.insert(passes_.steps[u].rides_on).second) return false;
    }
    return true;
  }
  int64_t bytes(const std::set<int>& values) const {
    int64_t sum = 0;
    for (const int u : values) sum += passes_.steps[u].bytes;
    return sum;
  }

  // Whether fewer bytes are stored once no backward node reads value i.
  bool encode(int i) {
    if (passes_.steps[i].rides_on >= 0 || stored(way_).count(i) == 0) return false;
    Ways ways = way_;
    for (int k = passes_.forward; k < passes_.size(); ++k) {
      if (!reads(k, ways[k], i)) continue;
      const size_t now = ways[k];
      std::set<int> least;
      for (size_t w = 0; w < passes_.steps[k].first.size(); ++w) {
        if (reads(k, w, i) || in_place(k, w)) continue;
        Ways other = ways;
        other[k] = w;
        std::set<int> values = stored(other);
        if (!riders_agree(values) || (ways[k] != now && bytes(values) >= bytes(least)))
          continue;
        ways[k] = w;
        least = std::move(values);
      }
      if (ways[k] == now) return false;
    }
    if (bytes(stored(ways)) >= bytes(stored(way_))) return false;
    way_ = ways;
    return true;
  }

  // The first variant that the stored riders of the node go with; in place if that is safe.
  size_t forward_way(int i, const std::set<int>& values) const {
    const auto& ways = passes_.steps[i].first;
    const auto suits = [&](size_t w) {
      for (const int u : values) {
        if (passes_.steps[u].rides_on != i) continue;
        const auto& with = passes_.steps[u].first[0].with;
        if (std::find(with.begin(), with.end(), ways[w].variant) == with.end()) return false;
      }
      const int over = ways[w].overwrites;
      return over < 0 || (passes_.last_reader[over] <= i && values.count(over) == 0);
    };
    size_t best = ways.size();
    for (size_t w = 0; w < ways.size(); ++w) {
      if (!suits(w)) continue;
      if (best == ways.size()) best = w;
      if (in_place(i, w) && !in_place(i, best)) best = w;
    }
    return best == ways.size() ? 0 : best;
  }

  // What backward nodes read, riders that must run, and those that forward nodes read.
  std::set<int> kept_or_run() const {
    std::set<int> values = stored(way_);
    for (int i = passes_.forward - 1; i >= 0; --i) {
      if (passes_.steps[i].rides_on >= 0 && passes_.steps[i].must_run) values.insert(i);
    }
    for (int i = passes_.forward - 1; i >= 0; --i) {
      const Step& step = passes_.steps[i];
      if (step.rides_on >= 0 && values.count(i) == 0) continue;
      for (const int u : step.first[forward_way(i, values)].forward) {
        if (passes_.steps[u].rides_on >= 0) values.insert(u);
      }
    }
    return values;
  }

  std::vector<PlannedRun> runs() const {
    const std::set<int> values = kept_or_run();
    std::vector<PlannedRun> runs;
    for (int k = 0; k < passes_.size(); ++k) {
      const Step& step = passes_.steps[k];
      if (k < passes_.forward && step.rides_on >= 0 && values.count(k) == 0) continue;
      const size_t w = k < passes_.forward ? forward_way(k, values) : way_[k];
      runs.push_back({step.node, step.first[w].variant});
    }
    return runs;
  }

  const Problem& problem_;
  TwoPass passes_;
  Ways way_ = Ways(static_cast<size_t>(passes_.size()));
};

}  // namespace

RematMethod gist_method() {
  RematMethod method;
  method.name = "gist";
  method.what = "Gist's lossless encodings, nothing runs again; takes no budget";
  method.plan = [](const Problem& problem, int64_t, const Limits& limits) {
    const Stopwatch watch(limits);
    RematResult result;
    result.schedule = Encodings(problem).schedule();
    result.seconds = watch.seconds();
    return result;
  };
  return method;
}

}  // namespace tidemark::planner::remat
