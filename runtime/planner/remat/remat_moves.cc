#include "runtime/planner/remat/remat_moves.h"

#include <algorithm>
#include <limits>

namespace tidemark::planner::remat {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kMaxDepth = 30;
constexpr size_t kMaxBlock = 60;
constexpr double kRandomOption = 0.2;
constexpr double kRecomputeParent =
    0.3;  // share of riders that get a run of their parent's own

}  // namespace

Moves::Moves(const Options& options, Random& random)
    : options_(options),
      random_(random),
      next_use_(options.problem().nodes.size()),
      seen_(options.problem().nodes.size()),
      again_time_(options.problem().nodes.size(), kNever),
      in_block_(options.problem().nodes.size()) {
  for (OptionId o = 0; o < options.size(); ++o) {
    const auto choices = options.choices(o, true);
    if (choices.empty() || options.once(options.node(o))) continue;
    double& time = again_time_[options.node(o)];
    time = std::min(time, choices.back().time);
  }
}

void Moves::look_at(const Sequence& sequence, int32_t at) {
  live_.clear();
  stamp_live_ = stamp_dead_ + 1;
  stamp_dead_ = stamp_live_ + 1;
  for (auto k = static_cast<size_t>(at); k < sequence.size(); ++k) {
    const auto use = [&](NodeId u) {
      if (seen_[u] >= stamp_live_) return;
      seen_[u] = stamp_live_;
      next_use_[u] = static_cast<int32_t>(k);
      live_.push_back(u);
    };
    const OptionId option = sequence[k];
    for (const NodeId u : options_.inputs(option)) use(u);
    int32_t& seen = seen_[options_.node(option)];
    if (seen < stamp_live_) seen = stamp_dead_;
  }
}

void Moves::find_at_hand(const Sequence& sequence, int32_t at) {
  if (evaluator_ != nullptr && evaluator_->needed_before(sequence, at, at_hand_)) return;
  look_at(sequence, at);
  at_hand_.assign(next_use_.size(), 0);
  for (const NodeId u : live_) at_hand_[u] = 1;
}

int32_t Moves::insertion(const Sequence& sequence, int32_t at) const {
  while (at > 0 && at < static_cast<int32_t>(sequence.size()) && is_rider(sequence, at)) --at;
  return at;
}

double Moves::price(OptionId option) const {
  const auto choices = options_.choices(option, true);
  if (choices.empty()) return kNever;
  double sum = choices.back().time;
  for (const NodeId u : options_.inputs(option)) {
    if (!is_at_hand(u)) sum += std::min(again_time_[u], sum + 1);
  }
  const NodeId overwritten = options_.overwrites(option);
  if (overwritten != kNoNode && is_at_hand(overwritten)) sum += again_time_[overwritten];
  return sum;
}

OptionId Moves::choose_option(NodeId node) {
  if (options_.once(node)) return kNoOption;
  const auto all = options_.of_node(node);
  if (all.size() > 1 && random_.chance(kRandomOption)) {
    const OptionId any = all[random_.below(all.size())];
    if (!options_.choices(any, true).empty()) return any;
  }
  OptionId best = kNoOption;
  double least = kNever;
  for (const OptionId o : all) {
    const double price = this->price(o);
    if (price >= least) continue;
    least = price;
    best = o;
  }
  return best;
}

bool Moves::add_inputs(OptionId option, int depth) {
  const auto add = [&](NodeId u) {
    if (is_at_hand(u) || again_time_[u] == kNever) return true;
    return !random_.chance(recompute_chance_) || add_to_block(u, depth + 1);
  };
  const auto inputs = options_.inputs(option);
  return std::all_of(inputs.begin(), inputs.end(), add);
}

bool Moves::add_to_block(NodeId value, int depth) {
  if (depth > kMaxDepth || block_.size() > kMaxBlock) return false;
  const OptionId option = choose_option(value);
  if (option == kNoOption || !add_inputs(option, depth)) return false;
  const NodeId parent = options_.rider_of(option);
  if (parent != kNoNode) {
    OptionId best = kNoOption;
    double least = kNever;
    for (const OptionId o : options_.of_node(parent)) {
      if (!options_.goes_with(option, o) || options_.once(parent)) continue;
      const double price = this->price(o);
      if (price >= least) continue;
      least = price;
      best = o;
    }
    if (best == kNoOption || !add_inputs(best, depth)) return false;
    block_.push_back(best);
    in_block_[parent] = 1;
  }
  block_.push_back(option);
  in_block_[value] = 1;
  return true;
}

bool Moves::compute_before(Sequence& sequence, int32_t at, NodeId value) {
  at = insertion(sequence, at);
  find_at_hand(sequence, at);
  block_.clear();
  recompute_chance_ = random_.unit();
  const bool done = add_to_block(value, 0);
  for (const OptionId o : block_) in_block_[options_.node(o)] = 0;
  if (done) sequence.insert(sequence.begin() + at, block_.begin(), block_.end());
  return done;
}

bool Moves::relocate(Sequence& sequence, int32_t at) {
  const bool has_rider =
      at + 1 < static_cast<int32_t>(sequence.size()) && is_rider(sequence, at + 1);
  if (has_rider || is_rider(sequence, at)) return false;
  const OptionId option = sequence[at];
  sequence.erase(sequence.begin() + at);
  const int32_t to =
      insertion(sequence, static_cast<int32_t>(random_.below(sequence.size() + 1)));
  find_at_hand(sequence, to);
  block_.clear();
  recompute_chance_ = random_.unit();
  const bool done = add_inputs(option, 0);
  for (const OptionId o : block_) in_block_[options_.node(o)] = 0;
  block_.push_back(option);
  if (done) sequence.insert(sequence.begin() + to, block_.begin(), block_.end());
  return done;
}

// Lets riders among the option's inputs that are not live run behind the last run of their
// parent before `at`. Returns the number of runs inserted.
int32_t Moves::attach_riders(Sequence& sequence, int32_t at, OptionId option) {
  int32_t inserted = 0;
  for (const NodeId u : options_.inputs(option)) {
    const auto own = options_.of_node(u);
    if (own.empty() || is_at_hand(u) || options_.once(u)) continue;
    const OptionId rider = own[random_.below(own.size())];
    const NodeId parent = options_.rider_of(rider);
    if (parent == kNoNode || random_.chance(kRecomputeParent)) continue;
    int32_t k = at + inserted - 1;
    while (k >= 0 && options_.node(sequence[k]) != parent && options_.node(sequence[k]) != u)
      --k;
    if (k < 0 || options_.node(sequence[k]) == u) continue;
    for (const OptionId o : options_.of_node(parent)) {
      if (options_.goes_with(rider, sequence[k])) break;
      if (options_.goes_with(rider, o)) sequence[k] = o;
    }
    sequence.insert(sequence.begin() + k + 1, rider);
    at_hand_[u] = 1;
    ++inserted;
  }
  return inserted;
}

bool Moves::switch_option(Sequence& sequence, int32_t at, NodeId avoided) {
  const OptionId old = sequence[at];
  const NodeId node = options_.node(old);
  bool is_first = true;
  for (int32_t k = 0; k < at && is_first; ++k) is_first = options_.node(sequence[k]) != node;
  OptionId chosen = kNoOption;
  size_t count = 0;
  for (const OptionId o : options_.of_node(node)) {
    const auto inputs = options_.inputs(o);
    if (o == old || options_.choices(o, !is_first).empty()) continue;
    if (std::count(inputs.begin(), inputs.end(), avoided) > 0) continue;
    if (random_.below(++count) == 0) chosen = o;
  }
  if (chosen == kNoOption) return false;
  int32_t place = insertion(sequence, at);
  find_at_hand(sequence, place);
  sequence[at] = chosen;
  const int32_t attached = attach_riders(sequence, place, chosen);
  place += attached;
  at += attached;
  block_.clear();
  recompute_chance_ = random_.unit();
  const bool done = add_inputs(chosen, 0);
  for (const OptionId o : block_) in_block_[options_.node(o)] = 0;
  if (done) sequence.insert(sequence.begin() + place, block_.begin(), block_.end());
  // A parent may have to go with its rider by another option.
  const NodeId parent = options_.rider_of(chosen);
  const auto moved = static_cast<int32_t>(at + (done ? block_.size() : 0));
  if (done && parent != kNoNode && moved > 0 &&
      !options_.goes_with(chosen, sequence[moved - 1])) {
    for (const OptionId o : options_.of_node(parent)) {
      if (options_.goes_with(chosen, o)) sequence[moved - 1] = o;
    }
  }
  return done;
}

int32_t Moves::remove(Sequence& sequence, int32_t at) {
  int32_t end = at + 1;
  for (; end < static_cast<int32_t>(sequence.size()) && is_rider(sequence, end); ++end) {
    left_riders_.push_back(sequence[end]);
  }
  sequence.erase(sequence.begin() + at, sequence.begin() + end);
  return end - at;
}

void Moves::attach_left_riders(Sequence& sequence) {
  for (const OptionId rider : left_riders_) {
    const NodeId value = options_.node(rider);
    int32_t parent = -1;  // its last run
    bool is_live = false;
    const auto reads = [&](OptionId option) {
      const auto inputs = options_.inputs(option);
      return std::binary_search(inputs.begin(), inputs.end(), value);
    };
    for (int32_t k = 0; k < static_cast<int32_t>(sequence.size()); ++k) {
      if (options_.node(sequence[k]) == value) is_live = true;
      if (options_.goes_with(rider, sequence[k])) parent = k;
      if (is_live || parent < 0 || !reads(sequence[k])) continue;
      sequence.insert(sequence.begin() + parent + 1, rider);
      break;
    }
  }
  left_riders_.clear();
}

void Moves::shift(Sequence& sequence, int32_t at, int32_t reach) {
  at = insertion(sequence, at);
  int32_t end = at + 1;
  while (end < static_cast<int32_t>(sequence.size()) && is_rider(sequence, end)) ++end;
  const Sequence moved(sequence.begin() + at, sequence.begin() + end);
  sequence.erase(sequence.begin() + at, sequence.begin() + end);
  const auto length = static_cast<int32_t>(sequence.size());
  const int32_t low = std::max(0, at - reach), high = std::min(length, at + reach);
  int32_t to = low + static_cast<int32_t>(random_.below(high - low + 1));
  if (to < length) to = insertion(sequence, to);
  sequence.insert(sequence.begin() + to, moved.begin(), moved.end());
}

}  // namespace tidemark::planner::remat
