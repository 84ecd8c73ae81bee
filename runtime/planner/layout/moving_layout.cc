#include "runtime/planner/layout/moving_layout.h"

#include <algorithm>
#include <random>
#include <utility>

#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/moving_pass.h"

namespace tidemark::planner {
namespace {

using Run = MovingPass::Run;

// Layouts to begin with are made by first fit as if there were more room, and what lies above
// the capacity is left out: with those below such a share of the capacity at the bottom.
constexpr int64_t kSmallShares[] = {0, 2000, 500, 150};
constexpr int64_t kMoreRoom = 16;

// Without a limit on nodes, passes end when so many in turn were of no use.
constexpr int kUseless = 2000;

// Those below this share of the capacity are not taken away from their places.
constexpr int64_t kLeftAlone = 500;

class MovingSearch {
 public:
  MovingSearch(const MovingProblem& problem, const Limits& limits)
      : problem_(problem),
        limits_(limits),
        watch_(limits.seconds),
        random_(limits.seed),
        pass_(problem) {}

  std::optional<MovingLayout> run() {
    begin(Offsets(count(), MovingPass::kNowhere));
    for (const int64_t share : kSmallShares) {
      if (is_over()) break;
      if (const auto hints = first_hints(share)) begin(*hints);
    }
    for (int useless = 0; !is_over() && useless < kUseless; ++useless) {
      if (improve()) useless = 0;
    }
    if (!best_.placed()) return std::nullopt;
    return std::move(best_.end.layout);
  }

 private:
  size_t count() const { return problem_.buffers.size(); }
  Bytes size(size_t i) const { return problem_.buffers[i].size; }
  bool is_over() const {
    return nodes_ >= limits_.nodes || watch_.expired() ||
           (best_.placed() && best_.end.layout.moved == Bytes(0));
  }

  std::optional<Offsets> first_hints(int64_t share) {
    Limits once;
    once.nodes = 1;
    const Bytes room = problem_.capacity * kMoreRoom;
    auto fixed = problem_.homes;
    if (share > 0) {
      std::vector<Buffer> small = problem_.buffers;
      for (size_t i = 0; i < count(); ++i) {
        if (!fixed[i] && small[i].size * share > problem_.capacity) small[i].size = Bytes(0);
      }
      const auto found = fit_within(small, small, fixed, room, once);
      if (!found) return std::nullopt;
      for (size_t i = 0; i < count(); ++i) {
        if (!is_empty(small[i])) fixed[i] = (*found)[i];
      }
    }
    auto hints = fit_within(problem_.buffers, problem_.buffers, fixed, room, once);
    if (!hints) return std::nullopt;
    for (size_t i = 0; i < count(); ++i) {
      const bool above = (*hints)[i] + size(i) > Offset() + problem_.capacity;
      if (above) (*hints)[i] = MovingPass::kNowhere;
    }
    return hints;
  }

  void begin(const Offsets& hints) {
    nodes_ += static_cast<int64_t>(count());
    Run run = pass_.run(hints, random_());
    if (!current_.complete || run.better_than(current_)) current_ = run;
    if (!best_.complete || run.better_than(best_)) best_ = std::move(run);
  }

  // Another run without some of what moves, and some of what is there with it.
  bool improve() {
    nodes_ += static_cast<int64_t>(count());
    struct Trouble {
      size_t buffer;
      int64_t time;
    };
    const MovingPass::State& now = current_.end;
    std::vector<Trouble> troubles;
    for (const Move& move : now.layout.moves) troubles.push_back({move.buffer, move.time});
    for (const size_t i : now.away) troubles.push_back({i, problem_.buffers[i].begin});
    for (const size_t i : now.spilled) {
      troubles.insert(troubles.end(), 3, {i, problem_.buffers[i].begin});
    }
    int64_t sum = 0;
    for (const Trouble& trouble : troubles) sum += size(trouble.buffer).count();
    auto pick = static_cast<int64_t>(random_() % static_cast<uint64_t>(sum));
    auto trouble = troubles.begin();
    while (pick >= size(trouble->buffer).count()) pick -= size((trouble++)->buffer).count();
    const auto [buffer, time] = *trouble;
    std::vector<size_t> changed;
    const uint64_t how = random_() % 4;
    if (how < 2) changed.push_back(buffer);
    if (how == 2) {
      for (const Trouble& other : troubles) {
        if (other.time == time) changed.push_back(other.buffer);
      }
    }
    std::vector<size_t> live = pass_.live_at(time);
    std::erase_if(live, [&](size_t i) { return size(i) * kLeftAlone < problem_.capacity; });
    if (!live.empty()) {
      for (size_t n = 1 + random_() % 6; n > 0; --n) {
        changed.push_back(live[random_() % live.size()]);
      }
    }
    Offsets hints = now.layout.offsets;
    for (const size_t i : changed) hints[i] = MovingPass::kNowhere;
    Run run = pass_.run(hints, random_(), now.cost, current_.stops, changed);
    if (!run.complete) return false;
    const bool better = run.end.cost < now.cost;
    current_ = std::move(run);
    if (current_.better_than(best_)) best_ = current_;
    return better;
  }

  const MovingProblem& problem_;
  const Limits limits_;
  const Stopwatch watch_;
  std::mt19937_64 random_;
  MovingPass pass_;
  int64_t nodes_ = 0;
  Run current_, best_;
};

}  // namespace

std::optional<MovingLayout> lay_out_moving(const MovingProblem& problem, const Limits& limits) {
  if (max_load(problem.buffers) > align_down(problem.capacity)) return std::nullopt;
  return MovingSearch(problem, limits).run();
}

}  // namespace tidemark::planner
