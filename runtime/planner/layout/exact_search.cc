#include "runtime/planner/layout/exact_search.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "runtime/planner/layout/sections.h"

namespace tidemark::planner {
namespace {

constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max();
constexpr int64_t kNodesPerLookAtTheClock = 256;
constexpr int64_t kSlackShares = 16;
constexpr std::array kNoises = {0.06, 0.12, 0.25};  // easy problems need little, hard ones more

// Decisions, by buffer. If there are more buffers, neighbours in time share a bit, which is
// sound: fewer decisions are skipped.
using Decisions = std::bitset<512>;

}  // namespace

class ExactSearch::Impl {
 public:
  Impl(const std::vector<Buffer>& buffers, ExactSearchOptions options)
      : options_(std::move(options)),
        count_(buffers.size()),
        sections_(make_sections(buffers)) {
    for (const Buffer& buffer : buffers) {
      size_.push_back(buffer.size.count());
      lifetime_.push_back(buffer.end - buffer.begin);
    }
    load_.assign(sections_.members.size(), 0);
    for (size_t s = 0; s < load_.size(); ++s) {
      for (const int i : sections_.members[s]) load_[s] += size_[i];
    }
    failures_.assign(load_.size(), 0);
    neighbours_ = sections_.neighbours();
    by_time_.resize(count_);
    std::iota(by_time_.begin(), by_time_.end(), 0);
    std::sort(by_time_.begin(), by_time_.end(), [&](int a, int b) {
      return std::pair(sections_.first[a], a) < std::pair(sections_.first[b], b);
    });
    bit_.resize(count_);
    const size_t share = (count_ + Decisions().size() - 1) / Decisions().size();
    for (size_t k = 0; k < count_; ++k) bit_[by_time_[k]] = k / std::max<size_t>(share, 1);
  }

  Verdict run(Bytes capacity, Walk walk, Rank rank, uint64_t seed, int64_t node_limit,
              const Stopwatch& watch) {
    capacity_ = capacity.count();
    if (std::any_of(load_.begin(), load_.end(), [&](int64_t l) { return l > capacity_; })) {
      return Verdict::kDoesNotFit;
    }
    if (std::any_of(size_.begin(), size_.end(), [&](int64_t l) { return l > capacity_; })) {
      return Verdict::kDoesNotFit;
    }
    top_.assign(count_, capacity_);
    for (size_t i = 0; i < options_.ceilings.size(); ++i) {
      top_[i] = std::min(capacity_, options_.ceilings[i].count());
    }
    walk_ = walk;
    slack_share_ = std::array<int64_t, 4>{8, 16, 1, 12}[seed % 4];
    reset();
    halve_failures();
    set_ranks(rank, seed);
    watch_ = &watch;
    node_end_ = node_limit > kInfinite - nodes_ ? kInfinite : nodes_ + node_limit;
    stopped_ = false;
    look_again(0, static_cast<int>(load_.size()));
    const bool fits = infer() && solve_parts(by_time_);
    if (stopped_) return Verdict::kUnknown;
    if (!fits) return Verdict::kDoesNotFit;
    offsets_.clear();
    for (const int64_t place : place_) offsets_.emplace_back(place);
    return Verdict::kFits;
  }

  const Offsets& offsets() const { return offsets_; }
  int64_t nodes() const { return nodes_; }

 private:
  void reset() {
    rest_.assign(count_, 0);
    low_.assign(count_, 0);
    why_.assign(count_, 0);
    reasons_.assign(1, {});
    passed_.assign(count_, 0);
    decided_.assign(Decisions().size(), 0);
    taken_.clear();
    place_.assign(count_, -1);
    left_ = load_;
    slack_.resize(load_.size());
    waiting_ = sections_.members;
    slot_.assign(count_, {});
    for (size_t i = 0; i < count_; ++i) {
      slot_[i].assign(sections_.last[i] - sections_.first[i], 0);
    }
    for (size_t s = 0; s < waiting_.size(); ++s) {
      for (size_t k = 0; k < waiting_[s].size(); ++k) slot(waiting_[s][k], s) = k;
    }
    trail_.clear();
    stale_.assign(load_.size(), 0);
    stale_first_ = stale_last_ = 0;
  }

  int& slot(int buffer, size_t section) {
    return slot_[buffer][section - sections_.first[buffer]];
  }
  void set_slot(int buffer, size_t section, size_t k) {
    slot(buffer, section) = static_cast<int>(k);
  }

  // So that the latest runs count most.
  void halve_failures() {
    all_failures_ = 0;
    for (int64_t& failures : failures_) all_failures_ += failures /= 2;
  }
  // How much to prefer what lives then: more where inference failed more often than elsewhere.
  double weight(size_t section) const {
    const double mean =
        static_cast<double>(all_failures_) / static_cast<double>(failures_.size());
    return 1 + static_cast<double>(failures_[section]) / (1 + mean);
  }

  void set_ranks(Rank rank, uint64_t seed) {
    std::vector<std::array<double, 3>> keys(count_);
    std::mt19937_64 random(seed);
    const double most = 1 + kNoises[seed % kNoises.size()];
    std::uniform_real_distribution<double> noise(1 / most, most);
    for (size_t i = 0; i < count_; ++i) {
      const double width = static_cast<double>(lifetime_[i]);
      const double bytes = static_cast<double>(size_[i]);
      const double area = width * bytes;
      const double sections = sections_.last[i] - sections_.first[i];
      const double met = static_cast<double>(neighbours_[i].size());
      double load = 0;
      for (int s = sections_.first[i]; s < sections_.last[i]; ++s) {
        load = std::max(load, static_cast<double>(load_[s]) * weight(s));
      }
      switch (rank) {
        case Rank::kLifetime: keys[i] = {width, area, load}; break;
        case Rank::kLoadLifetime: keys[i] = {load, width, area}; break;
        case Rank::kSize: keys[i] = {bytes, width, load}; break;
        case Rank::kArea: keys[i] = {area, width, load}; break;
        case Rank::kSections: keys[i] = {sections, bytes, load}; break;
        case Rank::kSectionsAndSize:
          keys[i] = {sections * std::sqrt(bytes), bytes, load};
          break;
        case Rank::kNeighbours: keys[i] = {met, bytes, load}; break;
      }
      if (seed != 0) {
        for (double& key : keys[i]) key *= noise(random);
      }
    }
    std::vector<int> order(count_);
    for (size_t i = 0; i < count_; ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return keys[a] > keys[b]; });
    rank_.assign(count_, 0);
    for (size_t r = 0; r < count_; ++r) rank_[order[r]] = static_cast<int>(r);
  }

  // The old value of a changed entry.
  struct Change {
    int64_t* where;
    int64_t old;
  };
  void set(int64_t& where, int64_t value) {
    trail_.push_back({&where, where});
    where = value;
  }
  void undo_to(size_t mark) {
    while (trail_.size() > mark) {
      *trail_.back().where = trail_.back().old;
      trail_.pop_back();
    }
  }

  void take(int i) {
    for (int s = sections_.first[i]; s < sections_.last[i]; ++s) {
      left_[s] -= size_[i];
      std::vector<int>& waiting = waiting_[s];
      const int k = slot(i, s);
      waiting[k] = waiting.back();
      slot(waiting[k], s) = k;
      waiting.pop_back();
    }
  }
  void give_back(int i) {
    for (int s = sections_.last[i]; s-- > sections_.first[i];) {
      left_[s] += size_[i];
      std::vector<int>& waiting = waiting_[s];
      const int k = slot(i, s);
      if (k == static_cast<int>(waiting.size())) {
        waiting.push_back(i);
      } else {
        set_slot(waiting[k], s, waiting.size());
        waiting.push_back(waiting[k]);
        waiting[k] = i;
      }
    }
    place_[i] = -1;
  }

  int64_t because(const Decisions& reason) {
    reasons_.push_back(reason);
    return static_cast<int64_t>(reasons_.size()) - 1;
  }
  void join(Decisions& reason, int i) const { reason |= reasons_[why_[i]]; }
  // Returns false, with conflict_, if `i` is then too high.
  bool raise(int i, int64_t to, int64_t why) {
    set(low_[i], to);
    set(why_[i], why);
    if (to + size_[i] > top_[i]) {
      conflict_ = reasons_[why];
      return false;
    }
    look_again(sections_.first[i], sections_.last[i]);
    return true;
  }

  void look_again(int first, int last) {
    std::fill(stale_.begin() + first, stale_.begin() + last, 1);
    stale_first_ = std::min(stale_first_, first);
    stale_last_ = std::max(stale_last_, last);
  }

  // Places `i` at its resting place, below all neighbours that wait. Returns false if something
  // then cannot fit.
  bool place(int i) {
    const int64_t end = rest_[i] + size_[i];
    place_[i] = rest_[i];
    take(i);
    Decisions reason = reasons_[why_[i]];
    reason.set(bit_[i]);
    const int64_t why = because(reason);
    for (const int j : neighbours_[i]) {
      if (place_[j] >= 0) continue;
      if (passed_[j] != 0) set(passed_[j], 0);
      if (rest_[j] < end) set(rest_[j], end);
      if (low_[j] < end && !raise(j, end, why)) return false;
    }
    return infer();
  }

  // `i` is not placed where it would rest now, so it lies above a neighbour that waits.
  bool pass_over(int i) {
    set(passed_[i], 1);
    return raise_above_neighbour(i) && infer();
  }

  // REQUIRES: since `i` was passed over, no neighbour was placed.
  bool raise_above_neighbour(int i) {
    int64_t least = top_[i];
    for (const int j : neighbours_[i]) {
      if (place_[j] < 0) least = std::min(least, low_[j] + size_[j]);
      if (least <= low_[i]) return true;
    }
    Decisions reason;
    reason.set(bit_[i]);
    for (const int j : neighbours_[i]) {
      if (place_[j] < 0) join(reason, j);
    }
    return raise(i, least, because(reason));
  }

  // Raises lower bounds of offsets until nothing changes, section by section. Each raise makes
  // the sections of its buffer stale.
  bool infer() {
    while (stale_first_ < stale_last_) {
      const int first = stale_first_, last = stale_last_;
      stale_first_ = last, stale_last_ = first;
      bool was_stale = false;
      for (int s = first; s < last; ++s) {
        const bool begins = !was_stale;
        was_stale = stale_[s] != 0;
        if (!was_stale) continue;
        stale_[s] = 0;
        if (infer_passed(s, begins) && infer_stack(s)) continue;
        ++failures_[s];
        ++all_failures_;
        return false;
      }
    }
    return true;
  }

  // Raises those passed over that begin in the section, or all.
  bool infer_passed(int section, bool all) {
    const std::vector<int>& waiting = waiting_[section];
    return std::all_of(waiting.begin(), waiting.end(), [&](int i) {
      return passed_[i] == 0 || (!all && sections_.first[i] != section) ||
             raise_above_neighbour(i);
    });
  }

  // At one time, all buffers that begin at some offset or above it must stack from there to the
  // capacity. So must a buffer and all that end above its offset, as these lie above it.
  bool infer_stack(int section) {
    const int64_t latest = capacity_ - left_[section];  // the lowest buffer begins no higher
    if (stacks_surely(section, latest)) return true;
    by_low_.clear(), by_end_.clear();
    for (const int i : waiting_[section]) {
      const int64_t end = low_[i] + size_[i];
      if (low_[i] > latest) by_low_.emplace_back(low_[i], i);
      if (end > latest) by_end_.emplace_back(end, i);
    }
    std::sort(by_low_.begin(), by_low_.end(), std::greater<>());
    std::sort(by_end_.begin(), by_end_.end(), std::greater<>());
    int64_t bytes = 0, above = 0;
    auto next = by_end_.begin();
    for (size_t k = 0; k < by_low_.size(); ++k) {
      const auto [low, i] = by_low_[k];
      bytes += size_[i];
      if (low + bytes > capacity_) {
        conflict_.reset();
        for (size_t m = 0; m <= k; ++m) join(conflict_, by_low_[m].second);
        return false;
      }
      for (; next != by_end_.end() && next->first > low; ++next) above += size_[next->second];
      const bool too_low = low + above > capacity_ && options_.infer_lowest;
      if (too_low && !raise_above_ends(i)) return false;
    }
    return true;
  }

  // Without sorting: a buffer may begin at `latest` plus the bytes of those that end below it.
  // So it may up to a height at which all that end below account for the rise.
  bool stacks_surely(int section, int64_t latest) const {
    const std::vector<int>& waiting = waiting_[section];
    int64_t highest = 0, below = 0;
    for (const int i : waiting) highest = std::max(highest, low_[i]);
    while (highest > latest + below) {
      int64_t bytes = 0;
      for (const int i : waiting) {
        bytes += low_[i] + size_[i] <= latest + below ? size_[i] : 0;
      }
      if (bytes == below) return false;
      below = bytes;
    }
    return true;
  }

  // Raises `i` from one end to the next higher until all that end above its offset fit above
  // it. REQUIRES: infer_stack() found that they do not; by_end_ has all that do.
  bool raise_above_ends(int i) {
    Decisions reason = reasons_[why_[i]];
    int64_t to = low_[i], top = to + size_[i];
    size_t k = 0;
    for (; top <= capacity_; ++k) {
      const int j = by_end_[k].second;
      if (j == i) continue;
      top += size_[j];
      join(reason, j);
    }
    for (; k > 0 && top > capacity_; --k) {
      const auto [end, j] = by_end_[k - 1];
      if (j == i) continue;
      top += end - to - size_[j];
      to = end;
    }
    return raise(i, to, because(reason));
  }

  // Solves `part`, which is sorted by first section. Pieces that share no section are solved
  // one after the other.
  bool solve_parts(const std::vector<int>& part) {
    if (!options_.decompose) return part.empty() || solve(part);
    size_t begin = 0;
    int reach = -1;
    std::vector<std::pair<size_t, size_t>> pieces;
    for (size_t k = 0; k < part.size(); ++k) {
      if (k > 0 && sections_.first[part[k]] >= reach) {
        pieces.emplace_back(begin, k);
        begin = k;
      }
      reach = std::max(reach, sections_.last[part[k]]);
    }
    if (begin < part.size()) pieces.emplace_back(begin, part.size());
    if (pieces.size() == 1) return solve(part);
    std::stable_sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) {
      return a.second - a.first < b.second - b.first;
    });
    const size_t done = taken_.size();
    for (const auto& [from, to] : pieces) {
      if (!solve({part.begin() + static_cast<std::ptrdiff_t>(from),
                  part.begin() + static_cast<std::ptrdiff_t>(to)})) {
        undo_decisions(done);
        return false;
      }
    }
    return true;
  }

  void decide(int i, bool placed) {
    taken_.push_back({i, placed, trail_.size(), reasons_.size()});
    ++decided_[bit_[i]];
  }
  // The decisions of a solved piece are kept until a piece beside it fails. Their changes to
  // rest_ and low_ affect that piece alone.
  void undo_decisions(size_t mark) {
    while (taken_.size() > mark) {
      const Decision& last = taken_.back();
      undo_to(last.trail);
      reasons_.resize(last.reasons);
      --decided_[bit_[last.buffer]];
      if (last.placed) give_back(last.buffer);
      taken_.pop_back();
    }
    std::fill(stale_.begin(), stale_.end(), 0);
    stale_first_ = stale_last_ = 0;
  }

  void count_node() {
    if (++nodes_ >= node_end_) stopped_ = true;
    if (nodes_ % kNodesPerLookAtTheClock == 0 && watch_->expired()) stopped_ = true;
  }

  // Whether a waiting buffer could still lie below `i`.
  bool has_hole_below(int i) const {
    return std::any_of(neighbours_[i].begin(), neighbours_[i].end(),
                       [&](int j) { return place_[j] < 0 && rest_[j] + size_[j] <= rest_[i]; });
  }

  // The next buffer to decide on, or -1.
  int choose(const std::vector<int>& part) {
    const bool tight = walk_ == Walk::kTight;
    if (tight) find_slack(part);
    int best = -1;
    std::pair<int64_t, int> least;
    for (const int i : part) {
      if (rest_[i] != low_[i]) continue;
      std::pair at(rest_[i], rank_[i]);
      if (tight) {
        int64_t slack = kInfinite;
        for (int s = sections_.first[i]; s < sections_.last[i]; ++s) {
          slack = std::min(slack, slack_[s]);
        }
        at.first += slack / kSlackShares * slack_share_;
      }
      if ((best >= 0 && at >= least) || has_hole_below(i)) continue;
      best = i, least = at;
    }
    return best;
  }

  // What may be wasted at a time: the space above its lowest waiting buffer, less the waiting
  // bytes.
  void find_slack(const std::vector<int>& part) {
    const int begin = sections_.first[part.front()];
    int end = begin;
    for (const int i : part) end = std::max(end, sections_.last[i]);
    for (int s = begin; s < end; ++s) {
      int64_t lowest = capacity_;
      for (const int i : waiting_[s]) lowest = std::min(lowest, low_[i]);
      slack_[s] =
          static_cast<int64_t>(static_cast<double>(capacity_ - left_[s] - lowest) / weight(s));
    }
  }

  // Places all of `part`. If that fails, nothing has changed, and conflict_ holds decisions
  // taken before from which it follows.
  bool solve(const std::vector<int>& part) {
    count_node();
    const size_t start = taken_.size();
    std::vector<Decisions> passed;  // per buffer passed over here: why it cannot be placed
    std::vector<int> rest;
    rest.reserve(part.size());
    while (!stopped_) {
      const int best = choose(part);
      if (best < 0) {  // this follows from exact resting places, which all decisions determine
        for (size_t k = 0; k < decided_.size(); ++k) conflict_[k] = decided_[k] > 0;
        break;
      }
      const size_t before = taken_.size();
      decide(best, true);
      if (place(best)) {
        rest.clear();
        for (const int i : part) {
          if (i != best) rest.push_back(i);
        }
        if (solve_parts(rest)) return true;
      }
      if (stopped_) return false;
      if (!options_.jump) conflict_.set(bit_[best]);
      const bool matters = conflict_[bit_[best]];
      undo_decisions(before);
      if (!matters) break;
      forget_undone(best);
      passed.push_back(conflict_);
      decide(best, false);
      if (!pass_over(best)) break;
      count_node();
    }
    // A failure that follows from a buffer passed over follows from what kept it from its
    // place, too.
    while (!passed.empty() && !stopped_) {
      const int i = taken_.back().buffer;
      undo_decisions(start + passed.size() - 1);
      if (conflict_[bit_[i]]) {
        conflict_ |= passed.back();
        forget_undone(i);
      }
      passed.pop_back();
    }
    return false;
  }

  void forget_undone(int i) {
    if (decided_[bit_[i]] == 0) conflict_.reset(bit_[i]);
  }

  struct Decision {
    int buffer;
    bool placed;  // else passed over
    size_t trail, reasons;
  };

  ExactSearchOptions options_;
  size_t count_;
  Sections sections_;
  std::vector<int64_t> size_, lifetime_, load_;
  std::vector<std::vector<int>> neighbours_;
  std::vector<int> by_time_;
  std::vector<size_t> bit_;  // in Decisions

  int64_t capacity_ = 0;
  std::vector<int64_t> top_;  // per buffer: the lesser of the capacity and its ceiling
  std::vector<int> rank_;
  std::vector<int64_t> rest_;      // end of the highest placed buffer below, per waiting buffer
  std::vector<int64_t> low_;       // inferred: its offset is at least this, and >= rest_
  std::vector<int64_t> place_;     // -1: waits
  std::vector<int64_t> why_;       // of low_: an index into reasons_
  std::vector<int64_t> passed_;    // 1: passed over, and no neighbour was placed since
  std::vector<int64_t> left_;      // per section: bytes of waiting buffers
  std::vector<int64_t> slack_;     // per section, computed when it is needed
  std::vector<int64_t> failures_;  // per section: how often inference failed there
  int64_t all_failures_ = 0;       // their sum
  int64_t slack_share_ = 0;        // what it counts, of kSlackShares
  std::vector<std::vector<int>> waiting_;
  std::vector<char> stale_;  // per section: a bound changed since infer() looked at it
  int stale_first_ = 0, stale_last_ = 0;                  // all stale sections are between
  std::vector<std::pair<int64_t, int>> by_low_, by_end_;  // of infer_stack()
  std::vector<std::vector<int>> slot_;  // per buffer and section: its place in waiting_
  std::vector<Change> trail_;
  std::vector<Decision> taken_;
  std::vector<int> decided_;        // per bit of Decisions: how many are taken
  std::vector<Decisions> reasons_;  // each implies a bound; the first is empty
  Decisions conflict_;              // from them the last failure follows

  const Stopwatch* watch_ = nullptr;
  int64_t nodes_ = 0, node_end_ = 0;
  bool stopped_ = false;
  Walk walk_ = Walk::kLowest;
  Offsets offsets_;
};

ExactSearch::ExactSearch(const std::vector<Buffer>& buffers, ExactSearchOptions options)
    : impl_(std::make_unique<Impl>(buffers, std::move(options))) {}
ExactSearch::~ExactSearch() = default;
Verdict ExactSearch::run(Bytes capacity, Walk walk, Rank rank, uint64_t seed,
                         int64_t node_limit, const Stopwatch& watch) {
  return impl_->run(capacity, walk, rank, seed, node_limit, watch);
}
const Offsets& ExactSearch::offsets() const { return impl_->offsets(); }
int64_t ExactSearch::nodes() const { return impl_->nodes(); }

}  // namespace tidemark::planner
