#include "runtime/planner/papers/remat/two_pass.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark::planner::remat {
namespace {

class Reader {
 public:
  Reader(const Problem& problem, const TwoPassOptions& options)
      : problem_(problem), options_(options) {
    std::vector<std::vector<NodeId>> riders(problem.nodes.size());
    const std::vector<NodeId> listed = first_order(problem, options.order);
    for (const NodeId i : listed) {
      if (const NodeId p = problem.nodes[i].rider_of; p != kNoNode) riders[p].push_back(i);
    }
    for (const NodeId i : listed) {
      if (problem.nodes[i].rider_of != kNoNode) continue;
      order_.push_back(i);
      order_.insert(order_.end(), riders[i].begin(), riders[i].end());
    }
    position_.assign(problem.nodes.size(), -1);
    for (size_t k = 0; k < order_.size(); ++k) position_[order_[k]] = static_cast<int>(k);
    for (NodeId i = 0; i < problem.size(); ++i) {
      if (problem.must_run(i) && position_[i] < 0) fail(i, "must run, but rides on a rider");
      const auto required = std::count_if(riders[i].begin(), riders[i].end(),
                                          [&](NodeId r) { return problem.must_run(r); });
      if (required > 1) fail(i, "two riders must run, each directly after it");
    }
  }

  TwoPass read() {
    for (const NodeId i : order_) add_step(i);
    result_.forward = find_seed();
    fix_bytes();
    for (int k = 0; k < result_.size(); ++k) split_inputs(k);
    find_lives();
    make_stages();
    drop_unsafe_overwrites();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(NodeId i, const std::string& what) const {
    throw UsageError("[two passes] nodes[" + std::to_string(i) + "] (" +
                     problem_.nodes[i].name + "): " + what);
  }

  Way to_way(const Node& node, int32_t v) const {
    const Variant& variant = node.variants[static_cast<size_t>(v)];
    Way way;
    way.variant = v;
    way.time = variant.time;
    way.workspace = variant.workspace;
    way.when = variant.when;
    for (const NodeId u : variant.inputs) way.forward.push_back(position_[u]);
    if (variant.overwrites != kNoNode) {
      way.overwrites = position_[variant.overwrites];
      way.forward.push_back(way.overwrites);
    }
    std::sort(way.forward.begin(), way.forward.end());
    way.forward.erase(std::unique(way.forward.begin(), way.forward.end()), way.forward.end());
    if (node.rider_of != kNoNode) {
      const size_t count = problem_.nodes[node.rider_of].variants.size();
      for (int32_t p = 0; p < static_cast<int32_t>(count); ++p) {
        if (!variant.with ||
            std::find(variant.with->begin(), variant.with->end(), p) != variant.with->end()) {
          way.with.push_back(p);
        }
      }
    }
    return way;
  }

  // All inputs in Way::forward, until the passes are known.
  void add_step(NodeId i) {
    const Node& node = problem_.nodes[i];
    Step step;
    step.node = i;
    step.bytes = node.bytes;
    if (node.rider_of != kNoNode) step.rides_on = position_[node.rider_of];
    step.must_run = node.rider_of == kNoNode || problem_.must_run(i);
    step.may_run_again = !node.once && node.adds_fixed == 0;
    const int here = position_[i];
    for (int32_t v = 0; v < static_cast<int32_t>(node.variants.size()); ++v) {
      const Way way = to_way(node, v);
      for (const int u : way.forward) {
        if (u < 0 || u >= here) fail(i, "reads a value that comes later in the order");
      }
      if (way.when != When::kAgain) step.first.push_back(way);
      if (way.when != When::kFirst) step.again.push_back(way);
    }
    if (step.first.empty()) fail(i, "no variant for its first run");
    if (step.again.empty()) step.may_run_again = false;
    if (!options_.select_operators) {
      keep_one(step.first);
      if (!step.again.empty()) keep_one(step.again);
    }
    result_.steps.push_back(std::move(step));
  }

  static void keep_one(std::vector<Way>& ways) {
    const auto found = std::find_if(ways.begin(), ways.end(),
                                    [](const Way& way) { return way.overwrites < 0; });
    if (found != ways.end()) std::swap(*found, ways.front());
    ways.resize(1);
  }

  template <class Visit>
  void for_each_input(int k, const Visit& visit) const {
    for (const auto* ways : {&result_.steps[k].first, &result_.steps[k].again}) {
      for (const Way& way : *ways) {
        for (const int u : way.forward) visit(u);
        for (const int u : way.backward) visit(u);
      }
    }
  }

  // The position where the backward pass begins; see the header.
  int find_seed() const {
    const int size = result_.size();
    const auto is_update = [&](int k) {
      const Node& node = problem_.nodes[result_.steps[k].node];
      return node.once && node.bytes == 0 && node.adds_fixed == 0;
    };
    int seed = 0, most = 0;
    for (int s = 0; s < size; ++s) {
      if (result_.steps[s].rides_on >= 0) continue;
      std::vector<char> descends(static_cast<size_t>(size)), is_read(static_cast<size_t>(size));
      descends[s] = 1;
      for (int k = s; k < size; ++k) {
        for_each_input(k, [&](int u) { descends[k] |= descends[u]; });
        if (descends[k] == 0 || is_update(k)) continue;
        for_each_input(k, [&](int u) { is_read[u] = 1; });
      }
      const auto count = static_cast<int>(std::count(is_read.begin(), is_read.begin() + s, 1));
      if (count > most) {
        seed = s;
        most = count;
      }
    }
    if (most == 0) throw UsageError("[two passes] the problem has no backward pass");
    return seed;
  }

  void fix_bytes() {
    int64_t fixed = problem_.fixed_bytes;
    for (Step& step : result_.steps) {
      step.fixed_before = fixed;
      fixed += problem_.nodes[step.node].adds_fixed;
      step.fixed = fixed;
    }
  }

  void split_inputs(int k) {
    Step& step = result_.steps[k];
    const bool is_backward = k >= result_.forward;
    if (is_backward) {
      step.may_run_again = false;
      step.again.clear();
    }
    for (auto* ways : {&step.first, &step.again}) {
      for (Way& way : *ways) {
        const auto middle =
            std::lower_bound(way.forward.begin(), way.forward.end(), result_.forward);
        way.backward.assign(middle, way.forward.end());
        way.forward.erase(middle, way.forward.end());
      }
    }
    if (is_backward && step.rides_on >= 0) check_backward_rider(k);
  }

  // It always runs, directly after its node, with nothing computed again in between.
  void check_backward_rider(int k) const {
    const Step& step = result_.steps[k];
    const NodeId parent = result_.steps[step.rides_on].node;
    if (step.rides_on != k - 1) fail(step.node, "is the second rider of a backward node");
    for (const Way& way : step.first) {
      if (!way.forward.empty())
        fail(step.node, "is a backward rider that reads forward values");
      if (way.with.size() != problem_.nodes[parent].variants.size()) {
        fail(step.node, "is a backward rider that goes with some variants only");
      }
    }
  }

  void find_lives() {
    const auto size = static_cast<size_t>(result_.size());
    until_.assign(size, -1);
    result_.last_reader.assign(static_cast<size_t>(result_.forward), -1);
    for (int k = 0; k < result_.size(); ++k) {
      for (const Way& way : result_.steps[k].first) {
        for (const int u : way.forward) {
          until_[u] = k;
          if (k < result_.forward) result_.last_reader[u] = k;
        }
        for (const int u : way.backward) until_[u] = k;
      }
    }
    result_.gradients.assign(size + 1, 0);
    for (int u = result_.forward; u < result_.size(); ++u) {
      for (int k = u + 1; k <= until_[u]; ++k) result_.gradients[k] += result_.steps[u].bytes;
    }
  }

  void drop_unsafe_overwrites() {
    for (size_t t = 1; t < result_.stages.size(); ++t) {
      for (int k = result_.stages[t].first; k < result_.stages[t].end; ++k) {
        Step& step = result_.steps[k];
        std::erase_if(step.first, [&](const Way& way) {
          if (way.overwrites < 0) return false;
          if (way.overwrites >= result_.forward) return until_[way.overwrites] > k;
          return t + 1 < result_.stages.size() &&
                 result_.stages[t + 1].may_need(way.overwrites);
        });
        if (step.first.empty())
          fail(step.node, "can only overwrite a value that is read later");
      }
    }
  }

  bool reads_forward(int k) const {
    const auto& ways = result_.steps[k].first;
    return std::any_of(ways.begin(), ways.end(),
                       [](const Way& w) { return !w.forward.empty(); });
  }

  void make_stages() {
    result_.stages.push_back({0, result_.forward, false, {}, {}, 0});
    for (int k = result_.forward; k < result_.size(); ++k) {
      const bool reads = reads_forward(k);
      Stage& last = result_.stages.back();
      if (!reads && last.first >= result_.forward && !last.reads_forward) {
        last.end = k + 1;
        continue;
      }
      result_.stages.push_back({k, k + 1, reads, {}, {}, result_.gradients[k]});
    }
    over_from_.assign(result_.steps.size(), result_.size());
    for (int k = 0; k < result_.size(); ++k) {
      for (const NodeId u : problem_.nodes[result_.steps[k].node].after) {
        if (position_[u] < 0) continue;  // a rider of a rider
        over_from_[position_[u]] = std::min(over_from_[position_[u]], k);
      }
    }
    do find_needs();
    while (keep_what_is_over());
  }

  // What each stage or a later one may need; of stage 0, what is read in the backward pass.
  void find_needs() {
    std::vector<char> needed(static_cast<size_t>(result_.forward));
    for (size_t t = result_.stages.size() - 1; t > 0; --t) {
      Stage& stage = result_.stages[t];
      for (int k = stage.first; k < stage.end; ++k) {
        for (const Way& way : result_.steps[k].first) {
          for (const int u : way.forward) needed[u] = 1;
        }
      }
      stage.last_reader.assign(needed.size(), -1);
      for (int i = result_.forward - 1; i >= 0; --i) {
        const Step& step = result_.steps[i];
        if (needed[i] == 0 || !step.may_run_again || over_from_[i] < stage.first) continue;
        if (step.rides_on >= 0) needed[step.rides_on] = 1;
        for (const Way& way : step.again) {
          for (const int u : way.forward) {
            needed[u] = 1;
            stage.last_reader[u] = std::max(stage.last_reader[u], i);
          }
        }
      }
      stage.needed = needed;
    }
    result_.stages[0].needed = needed;
  }

  // A forward node that a stage may need after a node that comes after all its runs is never
  // computed again. Returns whether there was any.
  bool keep_what_is_over() {
    bool found = false;
    for (int i = 0; i < result_.forward; ++i) {
      Step& step = result_.steps[i];
      const bool is_needed = std::any_of(
          result_.stages.begin() + 1, result_.stages.end(),
          [&](const Stage& stage) { return stage.first > over_from_[i] && stage.may_need(i); });
      found |= is_needed && step.may_run_again;
      if (is_needed) step.may_run_again = false;
    }
    for (Step& step : result_.steps) {
      if (step.rides_on >= 0) step.may_run_again &= result_.steps[step.rides_on].may_run_again;
    }
    return found;
  }

  const Problem& problem_;
  const TwoPassOptions options_;
  std::vector<NodeId> order_;
  std::vector<int> position_, until_;
  std::vector<int> over_from_;  // by position: the first node that comes after all its runs
  TwoPass result_;
};

}  // namespace

TwoPass read_two_pass(const Problem& problem, const TwoPassOptions& options) {
  return Reader(problem, options).read();
}

}  // namespace tidemark::planner::remat
