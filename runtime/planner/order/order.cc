#include "runtime/planner/order/order.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>

#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/cut_bound.h"
#include "runtime/planner/order/passes.h"

namespace tidemark::planner {
namespace {

// Limits in search steps. Runs beyond the longest rarely decide anything; once an order is good
// enough, long ones are not worth their time either.
constexpr int64_t kFirstRun = 2000, kLongestRun = 1 << 24, kLongestGoodRun = 1 << 14;
// Budgets closer than this share (1/n) of the load are not told apart.
constexpr int64_t kSteps = 4096;
// Minimum cuts seldom improve on the forced loads: they get this share (1/n) of the remaining
// nodes.
constexpr int64_t kCutShare = 8;
// Orders found without a search; each takes as long as one node per operator.
constexpr int64_t kOrders = 1 + 2 * std::size(kOrderRules);

class OrderPlanner {
 public:
  OrderPlanner(const Problem& problem, const OrderOptions& options)
      : graph_(problem),
        options_(options),
        watch_(options.limits),
        reversed_(graph_.reversed()),
        forwards_(graph_),
        backwards_(reversed_) {}

  Order run(const Problem& problem) {
    offer(program_order(problem), "program order");
    for (const OrderRule& rule : kOrderRules) {
      offer(rule.order(graph_), rule.name);
      offer_reversed(rule.order(reversed_), rule.name + std::string(" from the end"));
    }
    for (const int64_t load : forced_loads(graph_)) bound_ = std::max(bound_, load);
    if (options_.search) improve();
    Order result;
    result.order = best_;
    result.load = Bytes(load_);
    result.bound = Bytes(bound_);
    result.method = method_;
    result.nodes = nodes();
    options_.limits.count(result.nodes + kOrders * static_cast<int64_t>(graph_.size()));
    return result;
  }

 private:
  void offer(const std::vector<OpId>& order, const std::string& method) {
    const std::vector<int64_t> loads = loads_in(graph_, order);
    const int64_t load = loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
    if (least_.empty()) least_ = loads;
    for (size_t i = 0; i < loads.size(); ++i) least_[i] = std::min(least_[i], loads[i]);
    if (!best_.empty() && load >= load_) return;
    best_ = order;
    load_ = load;
    method_ = method;
  }

  void offer_reversed(std::vector<OpId> order, const std::string& method) {
    std::reverse(order.begin(), order.end());
    offer(order, method);
  }

  bool may_go_on() const {
    return load_ > bound_ && nodes() < options_.limits.nodes && !watch_.expired();
  }

  int64_t nodes() const { return forwards_.nodes() + backwards_.nodes() + cut_nodes_; }

  // How to rank operators that change memory alike: as in the best order so far, in program
  // order, or at random.
  std::vector<int> preference(int64_t round, bool backwards) const {
    std::vector<int> prefer(graph_.size());
    if (round % 2 == 0) {
      for (size_t t = 0; t < best_.size(); ++t) prefer[best_[t]] = static_cast<int>(t);
    } else {
      std::iota(prefer.begin(), prefer.end(), 0);
    }
    if (round >= 2) {
      std::mt19937_64 random(options_.limits.seed * 1'000'003 + static_cast<uint64_t>(round));
      std::shuffle(prefer.begin(), prefer.end(), random);
    }
    if (backwards) {
      for (int& p : prefer) p = -p;
    }
    return prefer;
  }

  SearchEnd attempt(int64_t budget, int64_t round, int64_t length, bool backwards) {
    OrderSearch& search = backwards ? backwards_ : forwards_;
    const int64_t left = options_.limits.nodes - nodes();
    const SearchEnd end =
        search.run(budget, preference(round, backwards), std::min(length, left), watch_);
    if (end == SearchEnd::kFound && backwards) offer_reversed(search.order(), "search");
    if (end == SearchEnd::kFound && !backwards) offer(search.order(), "search");
    return end;
  }

  // Tries the bound first, which is often reached; then half-way to the load, and nearer to it
  // each time that neither direction gives an answer. Runs grow with each round.
  void improve() {
    // Long enough to reach the end, even if every operator is a choice.
    int64_t length = std::max(kFirstRun, 2 * static_cast<int64_t>(graph_.size()));
    for (int64_t round = 0; may_go_on(); ++round, length *= 2) {
      const bool good = static_cast<double>(load_ - bound_) <=
                        options_.good_gap * static_cast<double>(bound_);
      if (length > (good ? kLongestGoodRun : kLongestRun)) return prove(round, length);
      int64_t low = bound_;
      int64_t budget = bound_;
      while (low < load_ && may_go_on()) {
        SearchEnd end = SearchEnd::kLimit;
        for (const bool backwards : {false, true}) {
          if (end == SearchEnd::kLimit) end = attempt(budget, round, length, backwards);
        }
        if (end == SearchEnd::kExhausted && !has_in_place()) {
          // With in-place pairs, an order may need less than the search assumes.
          bound_ = std::max(bound_, budget + 1);
        }
        if (end != SearchEnd::kFound) low = budget + 1;
        budget = low + (load_ - low) / 2;
        if (budget + load_ / kSteps >= load_) break;
      }
      if (round == 0 && may_go_on()) cut();
    }
  }

  void cut() {
    const CutBound cut =
        cut_bound(graph_, least_, bound_, (options_.limits.nodes - nodes()) / kCutShare,
                  watch_.share(1.0 / kCutShare));
    bound_ = std::max(bound_, cut.load);
    cut_nodes_ += cut.nodes;
  }

  // Searches for the next better order. If the search is exhausted, there is none.
  void prove(int64_t round, int64_t length) {
    while (may_go_on() && !has_in_place()) {
      SearchEnd end = attempt(load_ - 1, round, length, false);
      if (end == SearchEnd::kLimit && may_go_on())
        end = attempt(load_ - 1, round, length, true);
      if (end == SearchEnd::kExhausted) bound_ = load_;
      if (end != SearchEnd::kFound) return;
    }
  }

  bool has_in_place() const {
    return std::any_of(graph_.ops.begin(), graph_.ops.end(),
                       [](const OrderGraph::Op& op) { return op.in_place > 0; });
  }

  OrderGraph graph_;
  const OrderOptions& options_;
  Stopwatch watch_;
  OrderGraph reversed_;
  OrderSearch forwards_, backwards_;
  std::vector<OpId> best_;
  std::vector<int64_t> least_;  // per operator: the least load while it runs, over all orders
  int64_t cut_nodes_ = 0;
  std::string method_;
  int64_t load_ = 0, bound_ = 0;
};

}  // namespace

Order plan_order(const Problem& problem, const OrderOptions& options) {
  return OrderPlanner(problem, options).run(problem);
}

}  // namespace tidemark::planner
