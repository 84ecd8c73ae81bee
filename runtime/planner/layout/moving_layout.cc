#include "runtime/planner/layout/moving_layout.h"

#include <algorithm>
#include <random>
#include <utility>

#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/moving_pass.h"
#include "runtime/planner/layout/small_apart.h"

namespace tidemark::planner {
namespace {

using Run = MovingPass::Run;

// Initial layouts come from first fit with kMoreRoom times the capacity; buffers above the
// capacity get no hint. Buffers below this share (1/n) of the capacity are placed first, at the
// bottom.
constexpr int64_t kSmallShares[] = {0, 2000, 500, 150};
constexpr int64_t kMoreRoom = 16;

// Without a limit on nodes, the search ends after this many passes in a row that did not help.
constexpr int kUseless = 2000;

// Buffers below this share (1/n) of the capacity are not picked at random for another place.
constexpr int64_t kMinPickedShare = 500;

class MovingSearch {
 public:
  MovingSearch(const MovingProblem& problem, const Limits& limits)
      : problem_(problem),
        limits_(limits),
        watch_(limits),
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
    auto fixed = problem_.preferred_offsets;
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

  // A buffer that moves, that ends away from its preferred offset or that found no place; and
  // when.
  struct Trouble {
    size_t buffer;
    int64_t time;
  };
  std::vector<Trouble> troubles(const MovingPass::State& state) {
    std::vector<Trouble> found;
    for (const size_t i : state.spilled) found.push_back({i, problem_.buffers[i].begin});
    if (!found.empty() && random_() % 2 == 0) return found;
    for (const Move& move : state.layout.moves) found.push_back({move.buffer, move.time});
    for (const size_t i : state.away) found.push_back({i, problem_.buffers[i].begin});
    return found;
  }

  // Picks a trouble at random, weighted by size, and chooses the buffers to place anew: the
  // buffer itself, or all in trouble at that time, and some of those live at that time.
  std::vector<size_t> choose(const MovingPass::State& state) {
    const std::vector<Trouble> all = troubles(state);
    int64_t sum = 0;
    for (const Trouble& trouble : all) sum += size(trouble.buffer).count();
    auto pick = static_cast<int64_t>(random_() % static_cast<uint64_t>(sum));
    auto trouble = all.begin();
    while (pick >= size(trouble->buffer).count()) pick -= size((trouble++)->buffer).count();
    const auto [buffer, time] = *trouble;
    std::vector<size_t> live = pass_.live_at(time), chosen;
    const bool spilled = state.layout.offsets[buffer] == MovingPass::kNowhere;
    const uint64_t how = random_() % 4;
    if (spilled) {
      for (const size_t i : live) {
        if (pass_.pinned(i, time) && random_() % 2 == 0) chosen.push_back(i);
      }
    } else if (how == 0) {
      for (const Trouble& other : all) {
        if (other.time == time) chosen.push_back(other.buffer);
      }
    } else if (how < 3) {
      chosen.push_back(buffer);
    }
    std::erase_if(live,
                  [&](size_t i) { return size(i) * kMinPickedShare < problem_.capacity; });
    if (live.empty()) return chosen;
    const uint64_t draw = random_();
    const uint64_t most = 2U << (random_() % 4);
    for (uint64_t n = 1 + draw % most; n > 0; --n) {
      chosen.push_back(live[random_() % live.size()]);
    }
    return chosen;
  }

  // Runs a pass without the hints of the chosen buffers. Returns false if that was no better.
  bool improve() {
    nodes_ += static_cast<int64_t>(count());
    const MovingPass::State& now = current_.end;
    const std::vector<size_t> chosen = choose(now);
    Offsets hints = now.layout.offsets;
    for (const size_t i : chosen) hints[i] = MovingPass::kNowhere;
    Run run = pass_.run(hints, random_(), now.cost, current_.stops, chosen);
    if (!run.complete || (current_.placed() && !run.placed())) return false;
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
  if (const SmallApart apart(problem); apart.fits()) {
    if (auto layout = MovingSearch(apart.rest(), limits).run()) {
      return apart.join(std::move(*layout));
    }
  }
  return MovingSearch(problem, limits).run();
}

}  // namespace tidemark::planner
