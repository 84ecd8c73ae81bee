#include "runtime/planner/validator_streams.h"

#include <algorithm>
#include <map>
#include <set>

namespace tidemark::planner {
namespace {

class StreamChecker {
 public:
  StreamChecker(const Problem& problem, const Plan& plan)
      : problem_(problem), plan_(plan), count_(plan.placements.size()) {}

  std::vector<std::pair<size_t, size_t>> run() {
    find_edges();
    find_users();
    find_neighbours();
    for (size_t i = 0; i < before_.size(); ++i) look_up_from(static_cast<OpId>(i));
    std::vector<std::pair<size_t, size_t>> clashes;
    for (size_t k = 0; k < count_; ++k) {
      for (const auto& [j, all_before] : neighbours_[k]) {
        if (k < j && !all_before && !neighbours_[j].at(k)) clashes.emplace_back(k, j);
      }
    }
    return clashes;
  }

 private:
  // Per operator, finds what must have ended when it begins, however the streams run.
  void find_edges() {
    before_.resize(problem_.operators.size());
    std::vector<OpId> writer(problem_.storages.size(), kNone);
    for (size_t i = 0; i < before_.size(); ++i) {
      for (const StorageId s : problem_.operators[i].outputs) writer[s] = static_cast<OpId>(i);
    }
    for (size_t i = 0; i < before_.size(); ++i) {
      const Operator& op = problem_.operators[i];
      before_[i] = op.after;
      for (const StorageId s : op.inputs) before_[i].push_back(writer[s]);
      for (const StorageId s : op.outputs) {
        const StorageId whole = problem_.storages[s].alias_of;
        if (whole != kNone) before_[i].push_back(writer[whole]);
      }
      std::erase_if(before_[i],
                    [&](OpId b) { return b == kNone || b == static_cast<OpId>(i); });
    }
    std::map<int32_t, OpId> last;
    for (const OpId id : plan_.order) {
      if (plan_.freedom != Freedom::kStreams) break;
      const auto [at, first] = last.try_emplace(problem_.operators[id].stream, id);
      if (!first) before_[id].push_back(at->second);
      at->second = id;
    }
  }

  bool takes_space(size_t k) const {
    return plan_.placements[k].size > Bytes(0) &&
           plan_.placements[k].end > plan_.placements[k].begin;
  }

  void find_users() {
    users_.resize(count_);
    used_by_.resize(before_.size());
    std::map<StorageId, size_t> place;
    for (size_t k = 0; k < count_; ++k) {
      const Placement& p = plan_.placements[k];
      if (p.storage != kNone) place[p.storage] = k;
      if (p.workspace_of != kNone) users_[k] = {p.workspace_of};
    }
    const auto place_of = [&](StorageId s) {
      const StorageId whole = problem_.storages[s].alias_of;
      return place.at(whole == kNone ? s : whole);
    };
    for (size_t s = 0; s < problem_.storages.size(); ++s) {
      const size_t k = place_of(static_cast<StorageId>(s));
      if (problem_.storages[s].at_start) from_start_.insert(k);
      if (problem_.storages[s].at_end) to_end_.insert(k);
    }
    for (size_t i = 0; i < before_.size(); ++i) {
      for (const auto& list : {problem_.operators[i].inputs, problem_.operators[i].outputs}) {
        for (const StorageId s : list) users_[place_of(s)].insert(static_cast<OpId>(i));
      }
    }
    for (size_t k = 0; k < count_; ++k) {
      if (!takes_space(k)) continue;
      for (const OpId user : users_[k]) used_by_[user].push_back(k);
    }
  }

  // Finds placements with common bytes, by a sweep over offsets.
  void find_neighbours() {
    neighbours_.resize(count_);
    std::vector<size_t> by_offset, open;
    for (size_t k = 0; k < count_; ++k) {
      if (takes_space(k)) by_offset.push_back(k);
    }
    std::sort(by_offset.begin(), by_offset.end(), [&](size_t a, size_t b) {
      return plan_.placements[a].offset < plan_.placements[b].offset;
    });
    for (const size_t k : by_offset) {
      std::erase_if(open, [&](size_t j) {
        const Placement& p = plan_.placements[j];
        return p.offset + p.size <= plan_.placements[k].offset;
      });
      for (const size_t j : open) {
        neighbours_[k][j] = !to_end_.contains(j) && !from_start_.contains(k);
        neighbours_[j][k] = !to_end_.contains(k) && !from_start_.contains(j);
      }
      open.push_back(k);
    }
  }

  // Finds neighbours whose users do not all come before this operator.
  void look_up_from(OpId id) {
    if (used_by_[id].empty()) return;
    std::vector<bool> above(before_.size(), false);
    std::vector<OpId> stack = before_[id];
    while (!stack.empty()) {
      const OpId op = stack.back();
      stack.pop_back();
      if (above[op]) continue;
      above[op] = true;
      stack.insert(stack.end(), before_[op].begin(), before_[op].end());
    }
    for (const size_t k : used_by_[id]) {
      for (auto& [j, all_before] : neighbours_[k]) {
        for (const OpId user : users_[j]) {
          if (!above[user] && !(user == id && hands_over(j, k))) all_before = false;
        }
      }
    }
  }

  bool hands_over(size_t from, size_t to) const {
    const Placement &p = plan_.placements[from], &q = plan_.placements[to];
    return p.end == q.begin + 1 &&
           std::any_of(plan_.in_place.begin(), plan_.in_place.end(), [&](const InPlace& pair) {
             return pair.input == p.storage && pair.output == q.storage;
           });
  }

  const Problem& problem_;
  const Plan& plan_;
  const size_t count_;
  std::vector<std::vector<OpId>> before_;
  std::vector<std::set<OpId>> users_;         // per placement
  std::vector<std::vector<size_t>> used_by_;  // per operator: placements
  std::set<size_t> from_start_, to_end_;
  // Per placement: others with common bytes; true if all their users come before its own.
  std::vector<std::map<size_t, bool>> neighbours_;
};

}  // namespace

std::vector<std::pair<size_t, size_t>> stream_clashes(const Problem& problem,
                                                      const Plan& plan) {
  if (plan.freedom == Freedom::kIssueOrder) return {};
  return StreamChecker(problem, plan).run();
}

}  // namespace tidemark::planner
