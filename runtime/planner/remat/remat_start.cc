#include "runtime/planner/remat/remat_start.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark::planner::remat {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kMaxDepth = 60;          // of recomputations within recomputations
constexpr size_t kMaxRunsPerNode = 8;  // on average; then the simulation is stuck
constexpr int64_t kNothing =
    std::numeric_limits<int64_t>::min();  // slack in which nothing fits
constexpr int64_t kEverything = std::numeric_limits<int64_t>::max();
constexpr int kMaxPriced = 150;  // sources looked at to price one recomputation
constexpr int64_t kTiny = 64;    // values of less than this part of a shortage are kept

// Runs that lie ahead are counted down: a use is known by the number of runs that follow it, so
// that of two uses the greater comes first. The runs of a recomputation come before all others.
class Simulation {
 public:
  Simulation(const Options& options, const FirstOptions& first, const StartWeights& weights)
      : options_(options),
        first_(first),
        weights_(weights),
        uses_(count()),
        live_(count()),
        pins_(count()),
        ran_(count()),
        is_over_(count()),
        priced_(count()),
        planned_(count()),
        free_(static_cast<int64_t>(static_cast<double>(options.budget()) * weights.share) -
              options.problem().fixed_bytes) {
    for (size_t k = first.order.size(); k-- > 0;) {
      for (const NodeId u : options.inputs(first.option[first.order[k]])) {
        uses_[u].push_back(static_cast<int32_t>(first.order.size() - k));
      }
    }
  }

  bool run() {
    for (size_t k = 0; k < first_.order.size(); ++k) {
      const NodeId node = first_.order[k];
      now_ = static_cast<int32_t>(first_.order.size() - k);
      if (ran_[node]) {
        forget_uses(first_.option[node]);
      } else if (!run_node(first_.option[node], 0)) {
        return false;
      }
    }
    return true;
  }

  Sequence take() { return std::move(sequence_); }

 private:
  size_t count() const { return options_.problem().nodes.size(); }
  bool is_useless(NodeId u) const { return uses_[u].empty(); }
  bool may_run_again(NodeId u) const { return !options_.once(u) && is_over_[u] == 0; }

  // The time to compute the value again for its next use, with those of its sources that will
  // not be live then.
  double price(NodeId node) {
    if (is_useless(node)) return 0;
    ++epoch_;
    priced_count_ = 0;
    return price_at(node, uses_[node].back());
  }

  // As price(), for the use `when`. Each source counts once.
  double price_at(NodeId node, int32_t when) {
    if (!may_run_again(node)) return kNever;
    if (priced_[node] == epoch_ || ++priced_count_ > kMaxPriced) return 0;
    priced_[node] = epoch_;
    double least = kNever;
    for (const OptionId o : options_.of_node(node)) {
      least = std::min(least, price_of_option(o, when));
      if (least < kNever) break;
    }
    return least;
  }

  double price_of_option(OptionId o, int32_t when) {
    const auto choices = options_.choices(o, true);
    if (choices.empty()) return kNever;
    double sum = choices.back().time;
    for (const NodeId u : options_.inputs(o)) {
      const bool stays = live_[u] && !uses_[u].empty() && uses_[u].front() <= when;
      if (!stays && ran_[u]) sum += price_at(u, when);
    }
    const NodeId overwritten = options_.overwrites(o);
    if (overwritten != kNoNode && !is_useless(overwritten)) sum += price_at(overwritten, when);
    return sum;
  }

  // The option by which a node runs again. Its inputs come before it in the order.
  OptionId cheapest_option(NodeId node) {
    OptionId best = kNoOption;
    double least = kNever;
    for (const OptionId o : options_.of_node(node)) {
      const auto inputs = options_.inputs(o);
      const auto is_known = [&](NodeId u) {
        return ran_[u] && first_.position[u] < first_.position[node];
      };
      const NodeId overwritten = options_.overwrites(o);
      if (!std::all_of(inputs.begin(), inputs.end(), is_known)) continue;
      if (overwritten != kNoNode && pins_[overwritten] > 0) continue;
      ++epoch_;
      priced_count_ = 0;
      const double price = price_of_option(o, now_);
      if (price >= least) continue;
      least = price;
      best = o;
    }
    return best;
  }

  void pin(NodeId u, std::vector<NodeId>& pinned) {
    ++pins_[u];
    pinned.push_back(u);
  }

  // The run is no longer ahead.
  void forget_uses(OptionId option) {
    for (const NodeId u : options_.inputs(option)) uses_[u].pop_back();
  }

  // Runs an option: recomputes what it lacks, evicts until it fits.
  bool run_node(OptionId option, int depth) {
    const NodeId node = options_.node(option), parent = options_.rider_of(option);
    if (depth > kMaxDepth || sequence_.size() > kMaxRunsPerNode * count()) return false;
    if (ran_[node] && !may_run_again(node)) return false;
    OptionId parent_option = kNoOption;
    if (parent != kNoNode && !follows(option)) {
      parent_option = option_for(option, parent);
      if (parent_option == kNoOption) return false;
    }
    std::vector<NodeId> pinned, missing;
    const auto need = [&](NodeId u) {
      if (u == parent && parent_option != kNoOption) return;
      if (live_[u] && std::count(pinned.begin(), pinned.end(), u) == 0) pin(u, pinned);
      if (!live_[u]) missing.push_back(u);
    };
    for (const NodeId u : options_.inputs(option)) need(u);
    if (parent_option != kNoOption) {
      for (const NodeId u : options_.inputs(parent_option)) need(u);
    }
    bool done = missing.empty() || recompute(missing, depth + 1, pinned);
    if (done && parent != kNoNode && parent_option == kNoOption && !follows(option))
      done = false;
    if (done && parent_option != kNoOption) {
      done = make_space(parent_option);
      if (done) append(parent_option);
      if (done) pin(parent, pinned);
    }
    forget_uses(option);
    done = done && make_space(option);
    if (done) append(option);
    for (const NodeId u : pinned) --pins_[u];
    return done;
  }

  bool follows(OptionId rider) const {
    return !sequence_.empty() && options_.goes_with(rider, sequence_.back());
  }
  OptionId option_for(OptionId rider, NodeId parent) const {
    if (!may_run_again(parent)) return kNoOption;
    for (const OptionId o : options_.of_node(parent)) {
      const auto inputs = options_.inputs(o);
      const bool is_known =
          std::all_of(inputs.begin(), inputs.end(), [&](NodeId u) { return ran_[u] != 0; });
      if (is_known && !options_.choices(o, true).empty() && options_.goes_with(rider, o))
        return o;
    }
    return kNoOption;
  }

  // Computes values again, with all that they need, in the order of the first runs. Pins them.
  bool recompute(const std::vector<NodeId>& values, int depth, std::vector<NodeId>& pinned) {
    std::vector<OptionId> plan;
    for (const NodeId u : values) {
      if (!add_to_plan(u, plan)) return false;
    }
    for (const OptionId o : plan) planned_[options_.node(o)] = 0;
    std::sort(plan.begin(), plan.end(), [&](OptionId a, OptionId b) {
      return first_.position[options_.node(a)] < first_.position[options_.node(b)];
    });
    const auto length = static_cast<int32_t>(plan.size());
    const int32_t outer = now_;
    for (int32_t k = length; k-- > 0;) {
      for (const NodeId u : options_.inputs(plan[k])) uses_[u].push_back(outer + length - k);
    }
    for (int32_t k = 0; k < length; ++k) {
      now_ = outer + length - k;
      const NodeId node = options_.node(plan[k]);
      if (live_[node]) {
        forget_uses(plan[k]);
      } else if (!run_node(plan[k], depth)) {
        return false;
      }
      if (std::count(values.begin(), values.end(), node) > 0) pin(node, pinned);
    }
    now_ = outer;
    return std::all_of(values.begin(), values.end(), [&](NodeId u) { return live_[u] != 0; });
  }

  bool add_to_plan(NodeId node, std::vector<OptionId>& plan) {
    if (live_[node] || planned_[node]) return true;
    const OptionId option = may_run_again(node) ? cheapest_option(node) : kNoOption;
    if (option == kNoOption) return false;
    planned_[node] = 1;
    plan.push_back(option);
    const auto inputs = options_.inputs(option);
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](NodeId u) { return add_to_plan(u, plan); });
  }

  // Evicts until the option fits, and further where a faster variant is worth it.
  bool make_space(OptionId option) {
    const NodeId node = options_.node(option);
    const bool again = ran_[node] != 0;
    if (options_.choices(option, again).empty()) return false;
    if (live_[node]) drop(node);
    const int64_t space = free_ - options_.adds_fixed(node);
    const Place place = place_of(option);
    const Choice* const smallest = options_.pick(option, again, place, kNothing);
    if (smallest == nullptr) return false;
    while (space - live_bytes_ < smallest->need) {
      const NodeId victim = cheapest_victim(smallest->need - space + live_bytes_);
      if (victim == kNoNode) return false;
      drop(victim);
    }
    const Choice* const fastest = options_.pick(option, again, place, kEverything);
    const Choice* const chosen = options_.pick(option, again, place, space - live_bytes_);
    for (const Choice* better = chosen + 1; better <= fastest; ++better) {
      if (!evict_for(*better, *chosen, space)) break;
    }
    return true;
  }

  // Which input the run may overwrite: one that nothing else uses from now on.
  Place place_of(OptionId option) const {
    const auto is_last_use = [&](NodeId u) {
      return u != kNoNode && pins_[u] == 1 && is_useless(u);
    };
    if (is_last_use(options_.may_overwrite(option, 0))) return kOverFirst;
    return is_last_use(options_.may_overwrite(option, 1)) ? kOverSecond : kNotInPlace;
  }

  // Evicts for a faster variant if that costs less than it gains.
  bool evict_for(const Choice& better, const Choice& chosen, int64_t space) {
    std::vector<NodeId> victims;
    double cost = 0;
    while (space - live_bytes_ < better.need) {
      const NodeId victim = cheapest_victim(better.need - space + live_bytes_);
      if (victim == kNoNode) break;
      cost += price(victim);
      victims.push_back(victim);
      drop(victim);
      if (cost > chosen.time - better.time) break;
    }
    if (space - live_bytes_ >= better.need && cost <= chosen.time - better.time) return true;
    for (const NodeId victim : victims) keep(victim);
    return false;
  }

  NodeId cheapest_victim(int64_t shortage) {
    const NodeId victim = cheapest_victim_above(shortage / kTiny);
    return victim != kNoNode ? victim : cheapest_victim_above(0);
  }

  NodeId cheapest_victim_above(int64_t bytes) {
    NodeId best = kNoNode;
    double least = kNever;
    for (const NodeId u : live_list_) {
      if (pins_[u] > 0 || options_.bytes(u) <= bytes) continue;
      if (is_useless(u)) return u;  // the oldest
      const double cost = price(u);
      if (cost == kNever) continue;
      const double score = cost / (std::pow(options_.bytes(u), weights_.size_weight) *
                                   std::pow(now_ - uses_[u].back() + 1, weights_.reach_weight));
      if (score < least) {
        least = score;
        best = u;
      }
    }
    return best;
  }

  void keep(NodeId u) {
    live_[u] = 1;
    live_list_.push_back(u);
    live_bytes_ += options_.bytes(u);
  }
  void drop(NodeId u) {
    live_[u] = 0;
    live_list_.erase(std::find(live_list_.begin(), live_list_.end(), u));
    live_bytes_ -= options_.bytes(u);
  }

  void append(OptionId option) {
    const NodeId node = options_.node(option);
    free_ -= options_.adds_fixed(node);
    sequence_.push_back(option);
    ran_[node] = 1;
    for (const NodeId u : options_.after(node)) is_over_[u] = 1;
    if (!live_[node]) keep(node);
    if (options_.overwrites(option) != kNoNode) drop(options_.overwrites(option));
  }

  const Options& options_;
  const FirstOptions& first_;
  StartWeights weights_;
  std::vector<std::vector<int32_t>> uses_;  // by value: the next one last
  std::vector<uint8_t> live_;
  std::vector<int32_t> pins_;
  std::vector<uint8_t> ran_;
  std::vector<uint8_t> is_over_;  // a node that comes after all its runs has run
  std::vector<int64_t> priced_;   // by node: the last call of price() that counted it
  std::vector<uint8_t> planned_;
  int64_t epoch_ = 0;
  int priced_count_ = 0;
  std::vector<NodeId> live_list_;  // the oldest first
  int64_t free_;                   // for values
  int64_t live_bytes_ = 0;
  int32_t now_ = 0;
  Sequence sequence_;
};

}  // namespace

std::optional<Sequence> simulate_start(const Options& options, const StartWeights& weights) {
  const FirstOptions first = choose_first_options(options, weights.order, weights.preference);
  if (!first.complete) return std::nullopt;
  Simulation simulation(options, first, weights);
  if (!simulation.run()) return std::nullopt;
  return simulation.take();
}

std::optional<Sequence> keep_all(const Options& options, FirstOrder order,
                                 Preference preference) {
  const FirstOptions first = choose_first_options(options, order, preference);
  if (!first.complete) return std::nullopt;
  Sequence sequence;
  for (const NodeId node : first.order) sequence.push_back(first.option[node]);
  return sequence;
}

}  // namespace tidemark::planner::remat
