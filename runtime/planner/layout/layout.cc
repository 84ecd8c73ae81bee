#include "runtime/planner/layout/layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "runtime/core/errors.h"
#include "runtime/planner/layout/exact_search.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/skyline_search.h"

namespace tidemark::planner {
namespace {

// The exact search looks at pairs of buffers that live at one time.
constexpr int64_t kMaxMeetings = 10'000'000;

// From here on a greedy takes longer than many skylines, which come first.
constexpr size_t kManyBuffers = 20'000;
struct Candidate {
  const char* method;
  Offsets offsets;
};

void offer(const std::vector<Buffer>& buffers, Candidate candidate, Layout& best) {
  const Bytes top = height(buffers, candidate.offsets);
  if (!best.method.empty() && top >= best.height) return;
  best.height = top;
  best.offsets = std::move(candidate.offsets);
  best.method = candidate.method;
}

// Tries skylines, which are cheap, beside slower methods.
class SkylinePlanner {
 public:
  SkylinePlanner(const std::vector<Buffer>& buffers, const LayoutOptions& options,
                 const Stopwatch& watch, Layout& best)
      : buffers_(buffers), options_(options), watch_(watch), best_(best) {}

  // Makes a number of steps, or fewer if a limit or the goal is reached.
  void run(Bytes goal, int64_t steps) {
    for (int64_t k = 0; k < steps && best_.height > goal; ++k) {
      if (best_.nodes + SkylineSearch::kNodesPerStep > options_.limits.nodes) return;
      if (watch_.expired()) return;
      if (!search_) search_.emplace(buffers_, options_.limits.seed);
      search_->step(goal);
      best_.nodes += SkylineSearch::kNodesPerStep;
      if (search_->height() < best_.height) {
        offer(buffers_, {"skyline search", search_->offsets()}, best_);
      }
    }
  }

 private:
  const std::vector<Buffer>& buffers_;
  const LayoutOptions& options_;
  const Stopwatch& watch_;
  Layout& best_;
  std::optional<SkylineSearch> search_;
};

// Runs the exact search at falling heights: first at the least one worth trying, then, while
// that stays undecided, half-way between the bound and the best height.
class ExactPlanner {
 public:
  ExactPlanner(const std::vector<Buffer>& buffers, const LayoutOptions& options,
               const Stopwatch& watch, SkylinePlanner& skylines, Layout& best)
      : buffers_(buffers), options_(options), watch_(watch), skylines_(skylines), best_(best) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (is_empty(buffers[i])) continue;
      kept_.push_back(i);
      waiting_.push_back(buffers[i]);
      unit_ = std::gcd(unit_, buffers[i].size.count());
    }
  }

  void run(Bytes goal) {
    ExactSearch search(waiting_);
    // Where one order gets lost, another goes straight. Most runs are short, some are long
    // (Luby, Sinclair and Zuckerman 1993). Some aim half-way, early and now and then, so that
    // there is a result if the goal is too low; not where one height is asked for, which
    // shorter runs reach sooner.
    const auto count = static_cast<int64_t>(waiting_.size());
    const bool decides = options_.target > Bytes(0);
    const int64_t shortest =
        decides ? kNodesPerBuffer / 2 * count : std::max(kShortestRun, kNodesPerBuffer * count);
    int64_t patience = shortest;
    bool improved = decides;
    for (uint64_t round = 0; best_.height > goal && may_go_on(); ++round) {
      const Walk walk = round % 2 == 0 ? Walk::kTight : Walk::kLowest;
      for (const Rank rank : kRanks) {
        const int64_t length = shortest * luby(round / 2 + 1);
        if (attempt(search, goal, walk, rank, round / 2, length) == Verdict::kDoesNotFit) {
          goal = best_.bound;
        }
        if (best_.height <= goal || !may_go_on()) return;
        if (!improved && search.nodes() > kEarlyWork / count) {
          improve(search, std::max(kQuickRun, 3 * count), 1);
          goal = std::max(goal, best_.bound);
          improved = true;
        }
      }
      if (!decides && round % kRoundsBetween == kRoundsBetween - 1) {
        improve(search, patience, 2);
        goal = std::max(goal, best_.bound);
        patience = std::min(2 * patience, kLongestRun);
      }
      skylines_.run(goal, kSkylinesPerRound);
    }
  }

 private:
  static constexpr int64_t kQuickRun = 1000, kShortestRun = 1000, kLongestRun = 1 << 20;
  static constexpr int64_t kNodesPerBuffer = 4;  // of a short run
  static constexpr uint64_t kRoundsBetween = 12;
  // Nodes times buffers spent before intermediate heights are tried. Quick problems are solved
  // by then.
  static constexpr int64_t kEarlyWork = 12'000'000;
  static constexpr int64_t kSkylinesPerRound = 16;
  // Heights closer than this share (1/n) are not told apart, except for the goal.
  static constexpr int64_t kSteps = 4096;
  static constexpr std::array kRanks{
      Rank::kSections,        Rank::kSize,         Rank::kLifetime, Rank::kNeighbours,
      Rank::kSectionsAndSize, Rank::kLoadLifetime, Rank::kArea};
  static constexpr int kTried = 4;  // of these, at heights half-way

  // 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..., from k = 1 on.
  static int64_t luby(uint64_t k) {
    while (!std::has_single_bit(k + 1)) k -= std::bit_floor(k) - 1;
    return static_cast<int64_t>((k + 1) / 2);
  }

  bool may_go_on() const { return best_.nodes < options_.limits.nodes && !watch_.expired(); }

  Verdict attempt(ExactSearch& search, Bytes aim, Walk walk, Rank rank, uint64_t round,
                  int64_t length) {
    const uint64_t seed = round == 0 ? 0 : options_.limits.seed * 1'000'003 + round;
    const int64_t before = search.nodes();
    const Verdict verdict = search.run(
        aim, walk, rank, seed, std::min(length, options_.limits.nodes - best_.nodes), watch_);
    best_.nodes += search.nodes() - before;
    if (verdict == Verdict::kFits) take(search);
    if (verdict == Verdict::kDoesNotFit) {
      // Buffers that rest on each other end at sums of sizes, which are multiples of unit_.
      best_.bound = std::max(best_.bound, Bytes((aim.count() / unit_ + 1) * unit_));
    }
    return verdict;
  }

  // Bisects between the greatest height that is infeasible, or seems so, and the best height
  // found. If the goal is too low, this alone gives results.
  void improve(ExactSearch& search, int64_t length, int walks) {
    Bytes low = best_.bound;
    while (best_.height - low > std::max(Bytes(unit_), Bytes(low.count() / kSteps))) {
      const Bytes aim = low + Bytes((best_.height - low).count() / 2);
      const Bytes before = best_.height;
      for (int k = 0; k < walks * kTried && best_.height == before; ++k) {
        if (!may_go_on()) return;
        const Walk walk = k < kTried ? Walk::kLowest : Walk::kTight;
        if (attempt(search, aim, walk, kRanks[k % kTried], 0, length) == Verdict::kDoesNotFit) {
          break;
        }
      }
      if (best_.height == before) low = std::max(best_.bound, aim + Bytes(1));
    }
  }

  void take(const ExactSearch& search) {
    Offsets offsets(buffers_.size());
    for (size_t k = 0; k < kept_.size(); ++k) offsets[kept_[k]] = search.offsets()[k];
    offer(buffers_, {"exact search", std::move(offsets)}, best_);
  }

  const std::vector<Buffer>& buffers_;
  const LayoutOptions& options_;
  const Stopwatch& watch_;
  SkylinePlanner& skylines_;
  Layout& best_;
  std::vector<size_t> kept_;
  std::vector<Buffer> waiting_;
  int64_t unit_ = 0;  // divides all sizes
};

}  // namespace

Bytes max_load(const std::vector<Buffer>& buffers) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  changes.reserve(2 * buffers.size());
  for (const Buffer& b : buffers) {
    if (is_empty(b)) continue;
    changes.emplace_back(b.begin, b.size.count());
    changes.emplace_back(b.end, -b.size.count());
  }
  std::sort(changes.begin(), changes.end());
  int64_t load = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, load += change);
  return Bytes(most);
}

Bytes height(const std::vector<Buffer>& buffers, const Offsets& offsets) {
  Offset top;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!is_empty(buffers[i])) top = std::max(top, offsets[i] + buffers[i].size);
  }
  return top - Offset();
}

std::vector<LifetimeEvent> lifetime_events(const std::vector<Buffer>& buffers) {
  std::vector<LifetimeEvent> events;
  events.reserve(2 * buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    events.push_back({buffers[i].begin, true, static_cast<int>(i)});
    events.push_back({buffers[i].end, false, static_cast<int>(i)});
  }
  std::sort(events.begin(), events.end(), [](const LifetimeEvent& a, const LifetimeEvent& b) {
    return std::tuple(a.time, a.begins, a.buffer) < std::tuple(b.time, b.begins, b.buffer);
  });
  return events;
}

void check_buffers(const std::vector<Buffer>& buffers) {
  int64_t sum = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    const std::string where = "buffer " + std::to_string(i);
    if (b.size < Bytes(0)) throw UsageError(where + ": its size is negative");
    if (b.begin > b.end) throw UsageError(where + ": it ends before it begins");
    int64_t lifetime = 0;
    if (__builtin_sub_overflow(b.end, b.begin, &lifetime)) {
      throw UsageError(where + ": its lifetime does not fit in 63 bits");
    }
    if (__builtin_add_overflow(sum, b.size.count(), &sum)) {
      throw UsageError(where + ": the sum of sizes up to it does not fit in 63 bits");
    }
  }
}

Layout plan_layout(const std::vector<Buffer>& buffers, const LayoutOptions& options) {
  check_buffers(buffers);
  const Stopwatch watch(options.limits);
  Layout best;
  best.bound = max_load(buffers);
  const Bytes goal = std::max(best.bound, options.target);
  SkylinePlanner skylines(buffers, options, watch, best);
  for (const Heuristic& heuristic : kHeuristics) {
    const bool slow = heuristic.max_buffers < SIZE_MAX;
    if (slow && options.exact && buffers.size() > kManyBuffers && best.nodes == 0) {
      skylines.run(goal, SkylineSearch::kTableSteps);
    }
    if (!best.method.empty() && (best.height <= goal || options.limits.stopped())) break;
    if (buffers.size() > heuristic.max_buffers || (slow && watch.expired())) continue;
    offer(buffers, {heuristic.name, heuristic.place(buffers)}, best);
  }
  if (best.height > goal && options.exact) {
    const bool few = buffers.size() <= ExactSearch::kMaxBuffers &&
                     count_meetings(buffers, kMaxMeetings) < kMaxMeetings;
    if (few) ExactPlanner(buffers, options, watch, skylines, best).run(goal);
    // The exact search may have proven that no layout is as low as the goal.
    skylines.run(std::max(goal, best.bound), std::numeric_limits<int64_t>::max());
  }
  options.limits.count(best.nodes + static_cast<int64_t>(buffers.size()));
  return best;
}

}  // namespace tidemark::planner
