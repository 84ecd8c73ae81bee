#include "runtime/planner/layout/exact_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <unordered_map>
#include <utility>

#include "runtime/planner/layout/sections.h"
#include "runtime/planner/mix.h"

namespace tidemark::planner {
namespace {

constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max();
constexpr size_t kMaxRemembered = 1 << 20;
constexpr int64_t kNodesPerLookAtTheClock = 256;
constexpr int64_t kSlackShares = 16;

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
    neighbours_ = sections_.neighbours();
    for (size_t i = 0; i < count_; ++i) {
      int64_t most = 0;
      for (int s = sections_.first[i]; s < sections_.last[i]; ++s) {
        most = std::max(most, load_[s]);
      }
      peak_load_.push_back(most);
    }
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
    set_ranks(rank, seed);
    watch_ = &watch;
    node_end_ = node_limit > kInfinite - nodes_ ? kInfinite : nodes_ + node_limit;
    std::vector<int> all(count_);
    for (size_t i = 0; i < count_; ++i) all[i] = static_cast<int>(i);
    std::sort(all.begin(), all.end(), [&](int a, int b) {
      return std::pair(sections_.first[a], a) < std::pair(sections_.first[b], b);
    });
    stopped_ = false;
    placed_.clear();
    if (!infer(0, static_cast<int>(load_.size()), 0)) return Verdict::kDoesNotFit;
    const bool fits = solve_parts(all, walk != Walk::kBottomUp ? 0 : -1, -1);
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
    failed_.clear();
  }

  int& slot(int buffer, size_t section) {
    return slot_[buffer][section - sections_.first[buffer]];
  }
  void set_slot(int buffer, size_t section, size_t k) {
    slot(buffer, section) = static_cast<int>(k);
  }

  void set_ranks(Rank rank, uint64_t seed) {
    std::vector<std::array<double, 3>> keys(count_);
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> noise(0.85, 1.18);
    for (size_t i = 0; i < count_; ++i) {
      const double width = static_cast<double>(lifetime_[i]);
      const double bytes = static_cast<double>(size_[i]);
      const double area = width * bytes;
      const double load = static_cast<double>(peak_load_[i]);
      const double sections = sections_.last[i] - sections_.first[i];
      const double met = static_cast<double>(neighbours_[i].size());
      switch (rank) {
        case Rank::kLifetime: keys[i] = {width, area, load}; break;
        case Rank::kLoad: keys[i] = {load, area, width}; break;
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

  // Places `i` at its resting place. Returns false if something then cannot fit. [first, last):
  // the sections that changed.
  bool place(int i, int& first, int& last) {
    const int64_t end = rest_[i] + size_[i];
    place_[i] = rest_[i];
    take(i);
    first = sections_.first[i], last = sections_.last[i];
    for (const int j : neighbours_[i]) {
      if (place_[j] >= 0) continue;
      if (rest_[j] < end) set(rest_[j], end);
      if (low_[j] < end) {
        set(low_[j], end);
        if (end + size_[j] > top_[j]) return false;
        first = std::min(first, sections_.first[j]);
        last = std::max(last, sections_.last[j]);
      }
    }
    return true;
  }

  // Raises lower bounds of offsets in sections [first, last) until nothing changes. No waiting
  // buffer is placed below `floor`.
  bool infer(int first, int last, int64_t floor) {
    while (first < last) {
      int again_first = last, again_last = first;
      for (int s = first; s < last; ++s) {
        const std::vector<int>& waiting = waiting_[s];
        if (waiting.empty()) continue;
        // The lowest waiting buffer must not begin above this offset.
        const int64_t latest = capacity_ - left_[s];
        int64_t least_end = kInfinite, least = kInfinite;
        for (const int i : waiting) {
          const int64_t low = std::max(low_[i], floor);
          least = std::min(least, low);
          if (low <= latest) least_end = std::min(least_end, low + size_[i]);
        }
        if (least > latest) return false;
        if (!options_.infer_lowest) continue;
        for (const int i : waiting) {
          if (std::max(low_[i], floor) <= latest || low_[i] >= least_end) continue;
          set(low_[i], least_end);
          if (least_end + size_[i] > top_[i]) return false;
          again_first = std::min(again_first, sections_.first[i]);
          again_last = std::max(again_last, sections_.last[i]);
        }
      }
      first = again_first, last = again_last;
    }
    return true;
  }

  // `i` is not placed where it would rest now, so it rests on a waiting buffer.
  bool pass_over(int i, int64_t floor) {
    int64_t least = kInfinite;
    for (const int j : neighbours_[i]) {
      if (place_[j] < 0) least = std::min(least, std::max(low_[j], floor) + size_[j]);
    }
    if (least == kInfinite || least + size_[i] > top_[i]) return false;
    if (low_[i] < least) {
      set(low_[i], least);
      return infer(sections_.first[i], sections_.last[i], floor);
    }
    return true;
  }

  // Solves `part`, which is sorted by first section. Pieces that share no section are solved
  // one after the other.
  bool solve_parts(const std::vector<int>& part, int64_t floor, int rank) {
    if (!options_.decompose) return part.empty() || solve(part, floor, rank);
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
    if (pieces.size() == 1) return solve(part, floor, rank);
    std::stable_sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) {
      return a.second - a.first < b.second - b.first;
    });
    const size_t done = placed_.size();
    for (const auto& [from, to] : pieces) {
      if (!solve({part.begin() + static_cast<std::ptrdiff_t>(from),
                  part.begin() + static_cast<std::ptrdiff_t>(to)},
                 floor, rank)) {
        unplace_to(done);
        return false;
      }
    }
    return true;
  }

  // The placements of a solved piece are kept until a piece beside it fails. The piece's
  // changes to rest_ and low_ affect that piece alone.
  void unplace_to(size_t mark) {
    while (placed_.size() > mark) {
      undo_to(placed_.back().trail);
      give_back(placed_.back().buffer);
      placed_.pop_back();
    }
  }

  // In other than a bottom-up walk, floor and rank do not tell which buffers were passed over;
  // low_ does.
  uint64_t key_of(const std::vector<int>& part) const {
    uint64_t key = part.size();
    for (const int i : part) {
      key = mix(key ^ mix((static_cast<uint64_t>(i) << 44) ^ static_cast<uint64_t>(rest_[i])));
      if (walk_ != Walk::kBottomUp) key = mix(key ^ static_cast<uint64_t>(low_[i]));
    }
    return key;
  }

  void count_node() {
    if (++nodes_ >= node_end_) stopped_ = true;
    if (nodes_ % kNodesPerLookAtTheClock == 0 && watch_->expired()) stopped_ = true;
  }

  // Places all of `part` at (floor, rank) or above. If it fails, nothing has changed.
  bool solve(const std::vector<int>& part, int64_t floor, int rank) {
    count_node();
    if (stopped_) return false;
    uint64_t key = 0;
    if (options_.remember) {
      key = key_of(part);
      const auto found = failed_.find(key);
      if (found != failed_.end() && found->second <= std::pair(floor, rank)) return false;
    }
    const size_t mark = trail_.size();
    const bool solved = branch(part, floor, rank);
    if (solved) return true;
    undo_to(mark);
    if (options_.remember && !stopped_ && failed_.size() < kMaxRemembered) {
      auto [at, added] = failed_.try_emplace(key, floor, rank);
      if (!added) at->second = std::min(at->second, std::pair(floor, rank));
    }
    return false;
  }

  // Whether a waiting buffer could still lie below `i`.
  bool has_hole_below(int i) const {
    return std::any_of(neighbours_[i].begin(), neighbours_[i].end(),
                       [&](int j) { return place_[j] < 0 && rest_[j] + size_[j] <= rest_[i]; });
  }

  // The next buffer to decide on, or -1.
  int choose(const std::vector<int>& part, int64_t floor, int rank) {
    if (walk_ == Walk::kTight) return choose_tight(part);
    const bool local = walk_ == Walk::kLocal;
    int64_t below = kInfinite;
    if (!local) {
      for (const int i : part) below = std::min(below, rest_[i] + size_[i]);
    }
    int best = -1;
    for (const int i : part) {
      if (rest_[i] != low_[i] || rest_[i] >= below) continue;
      const std::pair at(rest_[i], rank_[i]);
      if (!local && at <= std::pair(floor, rank)) continue;
      if (best >= 0 && at >= std::pair(rest_[best], rank_[best])) continue;
      if (local && has_hole_below(i)) continue;
      best = i;
    }
    return best;
  }

  // What may be wasted at a time: the space above its lowest waiting buffer, less the waiting
  // bytes.
  int choose_tight(const std::vector<int>& part) {
    const int begin = sections_.first[part.front()];
    int end = begin;
    for (const int i : part) end = std::max(end, sections_.last[i]);
    for (int s = begin; s < end; ++s) {
      int64_t lowest = capacity_;
      for (const int i : waiting_[s]) lowest = std::min(lowest, low_[i]);
      slack_[s] = capacity_ - left_[s] - lowest;
    }
    int best = -1;
    std::pair<int64_t, int> least;
    for (const int i : part) {
      if (rest_[i] != low_[i]) continue;
      int64_t slack = kInfinite;
      for (int s = sections_.first[i]; s < sections_.last[i]; ++s) {
        slack = std::min(slack, slack_[s]);
      }
      const std::pair at(rest_[i] + slack / kSlackShares * slack_share_, rank_[i]);
      if ((best >= 0 && at >= least) || has_hole_below(i)) continue;
      best = i, least = at;
    }
    return best;
  }

  bool branch(const std::vector<int>& part, int64_t floor, int rank) {
    std::vector<int> rest;
    rest.reserve(part.size());
    while (!stopped_) {
      const int best = choose(part, floor, rank);
      if (best < 0) return false;
      if (walk_ == Walk::kBottomUp) floor = rest_[best], rank = rank_[best];
      const size_t mark = trail_.size();
      int first = 0, last = 0;
      placed_.push_back({best, mark});
      const size_t done = placed_.size();
      if (place(best, first, last) && infer(first, last, floor)) {
        rest.clear();
        for (const int i : part) {
          if (i != best) rest.push_back(i);
        }
        if (solve_parts(rest, floor, rank)) return true;
      }
      unplace_to(done - 1);
      if (stopped_ || !pass_over(best, floor)) return false;
      if (walk_ != Walk::kBottomUp) count_node();
    }
    return false;
  }

  struct Placed {
    int buffer;
    size_t trail;
  };

  ExactSearchOptions options_;
  size_t count_;
  Sections sections_;
  std::vector<int64_t> size_, lifetime_, load_, peak_load_;
  std::vector<std::vector<int>> neighbours_;

  int64_t capacity_ = 0;
  std::vector<int64_t> top_;  // per buffer: the lesser of the capacity and its ceiling
  std::vector<int> rank_;
  std::vector<int64_t> rest_;   // end of the highest placed buffer below, per waiting buffer
  std::vector<int64_t> low_;    // inferred: its offset is at least this, and >= rest_
  std::vector<int64_t> place_;  // -1: waits
  std::vector<int64_t> left_;   // per section: bytes of waiting buffers
  std::vector<int64_t> slack_;  // per section, computed when it is needed
  int64_t slack_share_ = 0;     // what it counts, of kSlackShares
  std::vector<std::vector<int>> waiting_;
  std::vector<std::vector<int>> slot_;  // per buffer and section: its place in waiting_
  std::vector<Change> trail_;
  std::vector<Placed> placed_;
  std::unordered_map<uint64_t, std::pair<int64_t, int>> failed_;

  const Stopwatch* watch_ = nullptr;
  int64_t nodes_ = 0, node_end_ = 0;
  bool stopped_ = false;
  Walk walk_ = Walk::kBottomUp;
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
