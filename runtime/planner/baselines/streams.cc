#include "runtime/planner/baselines/streams.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/core/errors.h"
#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/bitset.h"
#include "runtime/planner/order/order.h"

namespace tidemark::planner {
namespace {

class StreamPlanner {
 public:
  StreamPlanner(const Problem& problem, const StreamOptions& options)
      : problem_(problem),
        options_(options),
        by_path_(options.sharing == StreamSharing::kPaths),
        count_(problem.op_count()) {
    if (options.freedom == Freedom::kIssueOrder) {
      throw UsageError("[stream_safe] freedom kIssueOrder: that is what memory_note() is for");
    }
  }

  Plan run() {
    plan_.order = program_order(problem_);
    plan_.freedom = options_.freedom;
    plan_.placements = lifetimes(problem_, plan_.order);
    find_edges();
    find_users();
    if (by_path_) {
      colour();
      find_paths();
    } else if (count_ <= kMaxOpsForBound) {
      find_descendants();
    } else {
      stack();
      fill_figures(plan_);
      return std::move(plan_);
    }
    if (options_.in_place) find_pairs();
    options_.sharing == StreamSharing::kOffsets ? first_fit() : walk();
    fill_figures(plan_);
    return std::move(plan_);
  }

 private:
  void find_edges() {
    before_ = predecessors(problem_);
    if (options_.freedom == Freedom::kStreams) {
      std::map<int32_t, OpId> last;
      for (const OpId id : plan_.order) {
        const auto [at, first] = last.try_emplace(problem_.operators[id].stream, id);
        if (!first) before_[id].push_back(at->second);
        at->second = id;
      }
    }
  }

  void find_users() {
    std::vector<size_t> at(problem_.storages.size(), 0);
    users_.resize(plan_.placements.size());
    kept_.assign(plan_.placements.size(), false);
    starts_.assign(plan_.placements.size(), false);
    for (size_t k = 0; k < plan_.placements.size(); ++k) {
      const Placement& p = plan_.placements[k];
      if (p.storage != kNone) at[p.storage] = k;
      if (p.workspace_of != kNone) users_[k] = {p.workspace_of};
    }
    for (size_t s = 0; s < problem_.storages.size(); ++s) {
      const size_t k = at[problem_.root(static_cast<StorageId>(s))];
      if (problem_.storages[s].at_end) kept_[k] = true;
      if (problem_.storages[s].at_start) starts_[k] = true;
    }
    for (const OpId id : plan_.order) {
      const Operator& op = problem_.operators[id];
      for (const auto* uses : {&op.inputs, &op.outputs}) {
        for (const StorageId s : *uses) {
          std::vector<OpId>& users = users_[at[problem_.root(s)]];
          if (users.empty() || users.back() != id) users.push_back(id);
        }
      }
    }
    placement_of_ = std::move(at);
  }

  // The path on which all users of a placement lie; 0: none.
  void find_paths() {
    path_.assign(plan_.placements.size(), 0);
    for (size_t k = 0; k < plan_.placements.size(); ++k) {
      if (kept_[k] || users_[k].empty()) continue;
      const size_t path = colour_[users_[k].front()];
      const bool one = std::all_of(users_[k].begin(), users_[k].end(),
                                   [&](OpId user) { return colour_[user] == path; });
      if (one) path_[k] = path;
    }
  }

  // Finds, for each operator, those after it, and for each placement, those after all its
  // users.
  void find_descendants() {
    std::vector<Bitset> down(count_, Bitset(count_));
    for (size_t t = count_; t-- > 0;) {
      const OpId id = plan_.order[t];
      for (const OpId before : before_[id]) {
        down[before].add(down[id]);
        down[before].set(id);
      }
    }
    for (size_t k = 0; k < plan_.placements.size(); ++k) {
      Bitset after(count_);
      if (!kept_[k] && !users_[k].empty()) {
        after = down[users_[k].front()];
        for (const OpId user : users_[k]) after.keep(down[user]);
      }
      after_.push_back(std::move(after));
    }
    down_ = std::move(down);
  }

  bool is_idle(size_t k) const {
    return plan_.placements[k].size == Bytes(0) ||
           plan_.placements[k].end == plan_.placements[k].begin;
  }
  // Whether all users of `a` have ended when the first user of `b` begins.
  bool is_before(size_t a, size_t b) const {
    if (starts_[b]) return false;
    if (!by_path_) return after_[a].has(users_[b].front());
    return path_[a] != 0 && path_[a] == colour_[users_[b].front()] &&
           plan_.placements[a].end <= plan_.placements[b].begin;
  }
  // REQUIRES: `user` is issued first.
  bool comes_before(OpId user, OpId op) const {
    if (!by_path_) return down_[user].has(op);
    return colour_[user] != 0 && colour_[user] == colour_[op];
  }

  // Takes pairs, largest first, in which all other users of the input come before the operator.
  void find_pairs() {
    std::vector<InPlace> pairs = problem_.may_be_in_place;
    std::stable_sort(pairs.begin(), pairs.end(), [&](const InPlace& a, const InPlace& b) {
      return problem_.storages[a.input].size > problem_.storages[b.input].size;
    });
    std::vector<bool> gives(plan_.placements.size()), takes(plan_.placements.size());
    for (const InPlace& pair : pairs) {
      const size_t input = placement_of_[pair.input], output = placement_of_[pair.output];
      if (kept_[input] || starts_[output] || gives[input] || takes[output] || is_idle(input) ||
          plan_.placements[input].size != plan_.placements[output].size ||
          users_[output].front() != pair.op || users_[input].back() != pair.op) {
        continue;
      }
      const bool last = std::all_of(users_[input].begin(), users_[input].end(), [&](OpId user) {
        return user == pair.op || comes_before(user, pair.op);
      });
      if (!last) continue;
      gives[input] = takes[output] = true;
      plan_.in_place.push_back(pair);
    }
  }

  // Lays placements side by side, except for in-place pairs.
  void stack() {
    Offset end;
    for (size_t k = 0; k < plan_.placements.size(); ++k) {
      if (is_idle(k)) continue;
      plan_.placements[k].offset = end;
      end = end + plan_.placements[k].size;
    }
  }

  void first_fit() {
    const Blocks blocks = to_blocks(plan_.placements, plan_.in_place);
    std::vector<std::vector<size_t>> members(blocks.buffers.size());
    for (size_t k = 0; k < plan_.placements.size(); ++k) {
      if (!is_idle(k)) members[blocks.block_of[k]].push_back(k);
    }
    std::vector<size_t> order;
    for (size_t b = 0; b < members.size(); ++b) {
      if (!members[b].empty()) order.push_back(b);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return blocks.buffers[a].size > blocks.buffers[b].size;
    });
    const auto all_before = [&](size_t a, size_t b) {
      return std::all_of(members[a].begin(), members[a].end(), [&](size_t x) {
        return std::all_of(members[b].begin(), members[b].end(),
                           [&](size_t y) { return is_before(x, y); });
      });
    };
    Offsets offsets(blocks.buffers.size());
    std::vector<size_t> placed;
    std::vector<std::pair<Offset, Offset>> taken;
    for (const size_t b : order) {
      taken.clear();
      for (const size_t other : placed) {
        if (all_before(b, other) || all_before(other, b)) continue;
        taken.emplace_back(offsets[other], offsets[other] + blocks.buffers[other].size);
      }
      std::sort(taken.begin(), taken.end());
      for (const auto& [begin, end] : taken) {
        if (begin - offsets[b] >= blocks.buffers[b].size) break;
        offsets[b] = std::max(offsets[b], end);
      }
      placed.push_back(b);
    }
    for (size_t k = 0; k < plan_.placements.size(); ++k) {
      if (!is_idle(k)) plan_.placements[k].offset = offsets[blocks.block_of[k]];
    }
  }

  // Repeatedly colours the path with the most uncoloured operators. The path may lead through
  // coloured ones.
  void colour() {
    colour_.assign(count_, 0);
    size_t left = count_;
    const auto paths = static_cast<size_t>(options_.paths);
    for (size_t path = 1; path <= paths && left > 0; ++path) {
      std::vector<int> length(count_, 0);
      std::vector<OpId> from(count_, kNone);
      OpId end = plan_.order.front();
      for (const OpId id : plan_.order) {
        for (const OpId before : before_[id]) {
          if (length[before] <= length[id]) continue;
          length[id] = length[before];
          from[id] = before;
        }
        if (colour_[id] == 0) ++length[id];
        if (length[id] > length[end]) end = id;
      }
      for (OpId id = end; id != kNone; id = from[id]) {
        if (colour_[id] != 0) continue;
        colour_[id] = path;
        --left;
      }
    }
  }

  // Block size; the placement that used the block last.
  using Box = std::multimap<Bytes, size_t>;

  // Walks like the memory note, with a box for each path.
  void walk() {
    std::vector<size_t> block(plan_.placements.size(), kNoBlock);
    std::vector<Bytes> size;
    std::vector<Box> boxes(by_path_ ? static_cast<size_t>(options_.paths) + 1 : 1);
    std::vector<size_t> donor(plan_.placements.size(), kNoBlock);
    std::vector<bool> gives(plan_.placements.size());
    for (const InPlace& pair : plan_.in_place) {
      donor[placement_of_[pair.output]] = placement_of_[pair.input];
      gives[placement_of_[pair.input]] = true;
    }
    std::vector<std::vector<size_t>> begin_at(count_ + 1), end_at(count_ + 1);
    for (size_t k = 0; k < plan_.placements.size(); ++k) {
      if (is_idle(k)) continue;
      begin_at[plan_.placements[k].begin].push_back(k);
      if (!gives[k]) end_at[plan_.placements[k].end].push_back(k);
    }
    for (size_t t = 0; t < count_; ++t) {
      for (const size_t k : end_at[t]) {
        if (!by_path_ || path_[k] != 0)
          boxes[by_path_ ? path_[k] : 0].emplace(size[block[k]], k);
      }
      for (const size_t k : begin_at[t]) {
        // What nobody uses was there at the start, and takes nobody's block.
        Box& box = boxes[by_path_ && !users_[k].empty() ? colour_[users_[k].front()] : 0];
        if (donor[k] == kNoBlock) block[k] = take(k, size, box, block);
      }
      for (const size_t k : begin_at[t]) {
        if (donor[k] != kNoBlock) block[k] = block[donor[k]];
      }
    }
    place_side_by_side(plan_, block, size);
  }

  // Takes the smallest block that holds the placement, or else the largest, which grows.
  size_t take(size_t k, std::vector<Bytes>& size, Box& box,
              const std::vector<size_t>& block) const {
    const Bytes wanted = plan_.placements[k].size;
    auto found = box.end();
    for (auto at = box.lower_bound(wanted); at != box.end(); ++at) {
      if (at->first.count() / options_.match_range > wanted.count()) break;
      if (is_before(at->second, k)) {
        found = at;
        break;
      }
    }
    for (auto at = box.lower_bound(wanted); found == box.end() && at != box.begin();) {
      --at;
      if (at->first.count() < wanted.count() / options_.match_range) break;
      if (is_before(at->second, k)) found = at;
    }
    if (found == box.end()) {
      size.push_back(wanted);
      return size.size() - 1;
    }
    const size_t taken = block[found->second];
    box.erase(found);
    size[taken] = std::max(size[taken], wanted);
    return taken;
  }

  const Problem& problem_;
  const StreamOptions options_;
  const bool by_path_;
  const size_t count_;
  Plan plan_;
  std::vector<std::vector<OpId>> before_;  // per operator
  std::vector<size_t> placement_of_;       // per storage that is no alias
  std::vector<std::vector<OpId>> users_;   // per placement, in program order
  std::vector<bool> kept_, starts_;        // per placement
  std::vector<Bitset> down_;               // per operator: those that come after it
  std::vector<Bitset> after_;              // per placement: those that come after all users
  std::vector<size_t> colour_;             // per operator: its path; 0: none
  std::vector<size_t> path_;               // per placement; 0: none
};

}  // namespace

Plan stream_safe(const Problem& problem, const StreamOptions& options) {
  return StreamPlanner(problem, options).run();
}

}  // namespace tidemark::planner
