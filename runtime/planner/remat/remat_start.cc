#include "runtime/planner/remat/remat_start.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark::planner::remat {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kMaxDepth = 2000;        // of recomputations that need recomputations
constexpr size_t kMaxRunsPerNode = 8;  // on average; then the simulation is stuck
constexpr int64_t kNothing =
    std::numeric_limits<int64_t>::min();  // slack in which nothing fits
constexpr int64_t kEverything = std::numeric_limits<int64_t>::max();
constexpr int kMaxPriced = 40;  // sources looked at to price one recomputation
constexpr int64_t kTiny = 64;   // values of less than this part of a shortage are kept

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
        priced_(count()),
        free_(options.budget() - options.problem().fixed_bytes) {
    for (const NodeId node : first.order) {
      const OptionId option = first.option[node];
      for (const NodeId u : options.inputs(option)) uses_[u].push_back(first.position[node]);
    }
    for (std::vector<int32_t>& uses : uses_) std::sort(uses.rbegin(), uses.rend());
  }

  bool run() {
    for (now_ = 0; now_ < static_cast<int32_t>(first_.order.size()); ++now_) {
      const NodeId node = first_.order[now_];
      if (!ran_[node] && !compute(node, 0)) return false;
      drop_useless();
    }
    return true;
  }

  Sequence take() { return std::move(sequence_); }

 private:
  size_t count() const { return options_.problem().nodes.size(); }

  // The position in the order of the next node that uses the value; -1 if there is none.
  int32_t next_use(NodeId u) {
    std::vector<int32_t>& uses = uses_[u];
    while (!uses.empty() && (uses.back() < now_ || ran_[first_.order[uses.back()]])) {
      uses.pop_back();
    }
    return uses.empty() ? -1 : uses.back();
  }

  // The time to compute the value again for its next use, with those of its sources that will
  // not be live then.
  double price(NodeId node) {
    ++epoch_;
    priced_count_ = 0;
    return price_at(node, next_use(node));
  }

  // As price(), at the position `when` of the order. Each source counts once.
  double price_at(NodeId node, int32_t when) {
    if (options_.once(node)) return kNever;
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
      const bool stays = live_[u] && !uses_[u].empty() && uses_[u].front() >= when;
      if (!stays && ran_[u]) sum += price_at(u, when);
    }
    const NodeId overwritten = options_.overwrites(o);
    if (overwritten != kNoNode && next_use(overwritten) > now_) {
      sum += price_at(overwritten, when);
    }
    return sum;
  }

  OptionId cheapest_option(NodeId node) {
    OptionId best = first_.option[node];
    if (!ran_[node]) return best;
    double least = kNever;
    for (const OptionId o : options_.of_node(node)) {
      ++epoch_;
      priced_count_ = 0;
      const double price = price_of_option(o, now_);
      const NodeId overwritten = options_.overwrites(o);
      if (overwritten != kNoNode && pins_[overwritten] > 0) continue;
      if (price < least) {
        least = price;
        best = o;
      }
    }
    return least < kNever ? best : kNoOption;
  }

  bool compute(NodeId node, int depth) {
    if (depth > kMaxDepth || sequence_.size() > kMaxRunsPerNode * count()) return false;
    if (ran_[node] && options_.once(node)) return false;
    const OptionId option = cheapest_option(node);
    if (option == kNoOption) return false;
    std::vector<NodeId> pinned;
    const auto pin = [&](NodeId u) {
      ++pins_[u];
      pinned.push_back(u);
      return live_[u] || compute(u, depth + 1);
    };
    bool done = true;
    // Live inputs first: to compute the others must not evict them.
    for (const bool is_live : {true, false}) {
      for (const NodeId u : options_.inputs(option)) {
        const bool is_turn =
            live_[u] == is_live && std::count(pinned.begin(), pinned.end(), u) == 0;
        if (done && is_turn) done = pin(u);
      }
    }
    const NodeId parent = options_.rider_of(option);
    if (done && parent != kNoNode) done = run_parent(option, parent, depth);
    done = done && make_space(option);
    if (done) append(option);
    for (const NodeId u : pinned) --pins_[u];
    return done;
  }

  // Lets the run before be one of the parent's.
  bool run_parent(OptionId rider, NodeId parent, int depth) {
    if (!sequence_.empty() && options_.goes_with(rider, sequence_.back())) return true;
    if (live_[parent]) drop(parent);
    if (!compute(parent, depth + 1)) return false;
    return options_.goes_with(rider, sequence_.back());
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
  Place place_of(OptionId option) {
    const auto is_last_use = [&](NodeId u) {
      if (u == kNoNode || pins_[u] != 1) return false;
      if (next_use(u) < 0) return true;
      const bool is_own =
          first_.order[now_] == options_.node(option) && uses_[u].back() == now_;
      return is_own && uses_[u].size() == 1;
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
      cost += price(victim) * weights_.caution;
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
      const int32_t next = next_use(u);
      if (next < 0) return u;
      const double cost = price(u);
      if (cost == kNever) continue;
      const double score = cost / (std::pow(options_.bytes(u), weights_.size_weight) *
                                   std::pow(next - now_ + 1, weights_.reach_weight));
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
    if (!live_[node]) keep(node);
    if (options_.overwrites(option) != kNoNode) drop(options_.overwrites(option));
  }

  void drop_useless() {
    for (size_t k = live_list_.size(); k-- > 0;) {
      const NodeId u = live_list_[k];
      if (next_use(u) < 0) drop(u);
    }
  }

  const Options& options_;
  const FirstOptions& first_;
  StartWeights weights_;
  std::vector<std::vector<int32_t>> uses_;  // by value: positions of users, the next one last
  std::vector<uint8_t> live_;
  std::vector<int32_t> pins_;
  std::vector<uint8_t> ran_;
  std::vector<int64_t> priced_;  // by node: the last call of price() that counted it
  int64_t epoch_ = 0;
  int priced_count_ = 0;
  std::vector<NodeId> live_list_;
  int64_t free_;  // for values
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
