#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/lowest_place.h"
#include "runtime/planner/layout/time_tree.h"

namespace tidemark::planner {
namespace {

// The largest load that each buffer meets, by a sparse table over the load profile.
std::vector<int64_t> loads_met(const std::vector<Buffer>& buffers) {
  std::vector<int64_t> times;
  for (const Buffer& b : buffers) times.push_back(b.begin), times.push_back(b.end);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto index = [&](int64_t t) {
    return std::lower_bound(times.begin(), times.end(), t) - times.begin();
  };
  std::vector<int64_t> load(times.size() + 1, 0);
  for (const Buffer& b : buffers) {
    load[index(b.begin)] += b.size.count();
    load[index(b.end)] -= b.size.count();
  }
  std::partial_sum(load.begin(), load.end(), load.begin());
  std::vector<std::vector<int64_t>> table{load};
  for (size_t width = 1; 2 * width <= load.size(); width *= 2) {
    const std::vector<int64_t>& below = table.back();
    std::vector<int64_t> row(load.size() - 2 * width + 1);
    for (size_t i = 0; i < row.size(); ++i) row[i] = std::max(below[i], below[i + width]);
    table.push_back(std::move(row));
  }
  std::vector<int64_t> met(buffers.size(), 0);
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (is_empty(buffers[i])) continue;
    const auto first = index(buffers[i].begin), last = index(buffers[i].end);
    size_t level = 0;
    while ((std::ptrdiff_t{2} << level) <= last - first) ++level;
    met[i] = std::max(table[level][first], table[level][last - (std::ptrdiff_t{1} << level)]);
  }
  return met;
}

std::vector<size_t> in_order(const std::vector<Buffer>& buffers, FitOrder order) {
  std::vector<std::pair<double, double>> keys(buffers.size());
  std::vector<int64_t> met;
  if (order == FitOrder::kLoad) met = loads_met(buffers);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const double size = static_cast<double>(buffers[i].size.count());
    const double life =
        static_cast<double>(buffers[i].end) - static_cast<double>(buffers[i].begin);
    switch (order) {
      case FitOrder::kSize: keys[i] = {size, life}; break;
      case FitOrder::kLifetime: keys[i] = {life, size}; break;
      case FitOrder::kArea: keys[i] = {size * life, size}; break;
      case FitOrder::kLoad: keys[i] = {static_cast<double>(met[i]), size * life}; break;
    }
  }
  std::vector<size_t> result(buffers.size());
  std::iota(result.begin(), result.end(), size_t{0});
  std::stable_sort(result.begin(), result.end(),
                   [&](size_t a, size_t b) { return keys[a] > keys[b]; });
  return result;
}

// Placed buffers, found by time: a tree over all begins. Each node has the latest end below it,
// so that buffers that miss an interval are skipped in bulk.
class PlacedBuffers {
 public:
  explicit PlacedBuffers(const std::vector<Buffer>& buffers) : buffers_(buffers) {
    by_begin_.resize(buffers.size());
    std::iota(by_begin_.begin(), by_begin_.end(), size_t{0});
    std::sort(by_begin_.begin(), by_begin_.end(), [&](size_t a, size_t b) {
      return std::pair(buffers[a].begin, a) < std::pair(buffers[b].begin, b);
    });
    position_.resize(buffers.size());
    for (size_t k = 0; k < by_begin_.size(); ++k) position_[by_begin_[k]] = k;
    while (leaves_ < buffers.size()) leaves_ *= 2;
    latest_.assign(2 * leaves_, kNone);
  }
  void add(size_t i) {
    for (size_t node = leaves_ + position_[i]; node > 0; node /= 2) {
      latest_[node] = std::max(latest_[node], buffers_[i].end);
    }
  }
  template <class Visit>
  void for_each_meeting(const Buffer& buffer, Visit visit) const {
    walk(1, 0, leaves_, buffer, visit);
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  template <class Visit>
  void walk(size_t node, size_t first, size_t width, const Buffer& buffer, Visit& visit) const {
    if (latest_[node] == kNone || latest_[node] <= buffer.begin) return;
    if (first >= by_begin_.size() || buffers_[by_begin_[first]].begin >= buffer.end) return;
    if (width == 1) return visit(by_begin_[first]);
    walk(2 * node, first, width / 2, buffer, visit);
    walk(2 * node + 1, first + width / 2, width / 2, buffer, visit);
  }

  const std::vector<Buffer>& buffers_;
  std::vector<size_t> by_begin_, position_;
  size_t leaves_ = 1;
  std::vector<int64_t> latest_;
};

}  // namespace

Offsets first_fit(const std::vector<Buffer>& buffers, FitOrder order) {
  Offsets offsets(buffers.size());
  TimeTree placed(buffers);
  for (const size_t i : in_order(buffers, order)) {
    if (is_empty(buffers[i])) continue;
    offsets[i] = placed.lowest(i);
    placed.place(i, offsets[i]);
  }
  return offsets;
}

namespace {

// First fit below a limit. The bytes of a buffer are preferably not used again for a while
// after its end.
class FitWithin {
 public:
  FitWithin(const std::vector<Buffer>& buffers, const std::vector<Buffer>& reluctant, Bytes top)
      : buffers_(buffers),
        reluctant_(reluctant),
        top_(Offset(0) + top),
        placed_(reluctant),
        offsets_(buffers.size()) {}

  bool put(size_t i, Offset place) {
    offsets_[i] = place;
    placed_.add(i);
    return place + buffers_[i].size <= top_;
  }
  bool put(size_t i) {
    hard_.clear();
    all_.clear();
    const Buffer& own = buffers_[i];
    placed_.for_each_meeting(reluctant_[i], [&](size_t j) {
      const Taken taken{{offsets_[j], offsets_[j] + buffers_[j].size},
                        reluctant_[j].end - own.begin};
      all_.push_back(taken);
      if (buffers_[j].begin < own.end && own.begin < buffers_[j].end) hard_.push_back(taken);
    });
    const Offset free = lowest_place(all_, own.size);
    if (free + own.size <= top_) return put(i, free);
    return put(i, least_early(own.size));
  }
  Offsets take() { return std::move(offsets_); }

 private:
  struct Taken : TakenSpace {
    int64_t early;  // how much too early it would be met
  };

  // The lower end of the gap in which buffers would be met the least too early.
  Offset least_early(Bytes size) {
    Offset best = lowest_place(hard_, size);
    int64_t least = std::numeric_limits<int64_t>::max();
    Offset place;
    const auto consider = [&](Offset end) {
      if (end - place < size) return;
      int64_t early = 0;
      for (const Taken& other : all_) {
        const bool met = other.begin < place + size && place < other.end;
        if (met) early = std::max(early, other.early);
      }
      if (early < least) best = place, least = early;
    };
    for (const Taken& other : hard_) {
      consider(other.begin);
      place = std::max(place, other.end);
    }
    consider(top_);
    return best;
  }

  const std::vector<Buffer>& buffers_;
  const std::vector<Buffer>& reluctant_;
  const Offset top_;
  PlacedBuffers placed_;
  Offsets offsets_;
  std::vector<Taken> all_, hard_;
};

}  // namespace

std::optional<Offsets> fit_within(const std::vector<Buffer>& buffers,
                                  const std::vector<Buffer>& reluctant,
                                  const std::vector<std::optional<Offset>>& fixed,
                                  Bytes capacity, const Limits& limits) {
  constexpr int kRounds = 200;  // for each order
  const Stopwatch watch(limits);
  int64_t nodes = 0;
  for (const FitOrder by : {FitOrder::kSize, FitOrder::kArea, FitOrder::kLoad}) {
    std::vector<size_t> order = in_order(buffers, by);
    std::erase_if(order, [&](size_t i) { return is_empty(buffers[i]) || fixed[i]; });
    for (int round = 0; round < kRounds && nodes < limits.nodes && !watch.expired(); ++round) {
      nodes += static_cast<int64_t>(buffers.size());
      FitWithin layout(buffers, reluctant, capacity);
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (!fixed[i] || is_empty(buffers[i])) continue;
        if (!layout.put(i, *fixed[i])) return std::nullopt;
      }
      std::vector<size_t> high, rest;
      for (const size_t i : order) (layout.put(i) ? rest : high).push_back(i);
      if (high.empty()) return layout.take();
      order = std::move(high);
      order.insert(order.end(), rest.begin(), rest.end());
    }
  }
  return std::nullopt;
}

int64_t count_meetings(const std::vector<Buffer>& buffers, int64_t limit) {
  std::vector<int64_t> begins, ends;
  for (const Buffer& b : buffers) {
    if (is_empty(b)) continue;
    begins.push_back(b.begin), ends.push_back(b.end);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  int64_t count = 0;
  size_t over = 0;
  for (size_t k = 0; k < begins.size() && count < limit; ++k) {
    while (ends[over] <= begins[k]) ++over;
    count += static_cast<int64_t>(k - over);
  }
  return std::min(count, limit);
}

}  // namespace tidemark::planner
