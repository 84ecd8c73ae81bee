#include "runtime/planner/validator.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/planner/validator_streams.h"

namespace tidemark::planner {
namespace {

class Validator {
 public:
  Validator(const Problem& problem, const Plan& plan, size_t limit)
      : problem_(problem), plan_(plan), limit_(limit) {}

  std::vector<std::string> run() {
    if (!check_order()) return found_;
    find_uses();
    if (!check_placements()) return found_;
    check_in_place();
    check_space();
    check_freedom();
    check_figures();
    return found_;
  }

 private:
  void report(const std::string& what) {
    if (found_.size() < limit_) found_.push_back(what);
  }
  std::string op(OpId id) const {
    return "operator " + std::to_string(id) + " '" + problem_.operators[id].name + "'";
  }
  std::string storage(StorageId id) const {
    return "storage " + std::to_string(id) + " '" + problem_.storages[id].name + "'";
  }
  std::string owner(const Placement& p) const {
    return p.storage != kNone ? storage(p.storage) : "workspace of " + op(p.workspace_of);
  }

  bool check_order() {
    const size_t count = problem_.operators.size();
    time_.assign(count, -1);
    if (plan_.order.size() != count) {
      report("the order has " + std::to_string(plan_.order.size()) + " of " +
             std::to_string(count) + " operators");
      return false;
    }
    for (size_t t = 0; t < count; ++t) {
      const OpId id = plan_.order[t];
      if (id < 0 || static_cast<size_t>(id) >= count) {
        report("position " + std::to_string(t) + ": no such operator");
        return false;
      }
      if (time_[id] >= 0) {
        report(op(id) + " runs twice");
        return false;
      }
      time_[id] = static_cast<int64_t>(t);
    }
    std::vector<OpId> writer(problem_.storages.size(), kNone);
    for (size_t i = 0; i < count; ++i) {
      for (const StorageId id : problem_.operators[i].outputs)
        writer[id] = static_cast<OpId>(i);
    }
    const auto needs = [&](OpId later, OpId earlier, const char* why) {
      if (earlier != kNone && earlier != later && time_[earlier] >= time_[later]) {
        report(op(later) + " runs before " + op(earlier) + why);
      }
    };
    for (size_t i = 0; i < count; ++i) {
      const auto id = static_cast<OpId>(i);
      for (const OpId before : problem_.operators[i].after)
        needs(id, before, " (control edge)");
      for (const StorageId s : problem_.operators[i].inputs) {
        needs(id, writer[s], ", which writes its input");
      }
      for (const StorageId s : problem_.operators[i].outputs) {
        if (problem_.storages[s].alias_of != kNone) {
          needs(id, writer[problem_.storages[s].alias_of], ", which writes what it updates");
        }
      }
    }
    return found_.empty();
  }

  // Finds the positions at which each storage that is no alias must be in its place.
  void find_uses() {
    uses_.assign(problem_.storages.size(), {});
    const auto last = static_cast<int64_t>(plan_.order.size());
    for (size_t i = 0; i < problem_.storages.size(); ++i) {
      const Storage& s = problem_.storages[i];
      const size_t whole = s.alias_of == kNone ? i : static_cast<size_t>(s.alias_of);
      if (s.at_end && last > 0) uses_[whole].insert(last - 1);
    }
    for (size_t i = 0; i < problem_.operators.size(); ++i) {
      for (const auto& list : {problem_.operators[i].inputs, problem_.operators[i].outputs}) {
        for (const StorageId id : list) {
          const StorageId whole = problem_.storages[id].alias_of;
          uses_[whole == kNone ? id : whole].insert(time_[i]);
        }
      }
    }
    // An unused storage needs no place.
    for (size_t i = 0; i < problem_.storages.size(); ++i) {
      const StorageId whole = problem_.storages[i].alias_of;
      std::set<int64_t>& uses = uses_[whole == kNone ? i : static_cast<size_t>(whole)];
      if (problem_.storages[i].at_start && !uses.empty()) uses.insert(0);
    }
  }

  bool check_placements() {
    std::map<StorageId, int> of_storage;
    std::map<OpId, int> of_op;
    for (const Placement& p : plan_.placements) {
      const bool is_storage =
          p.storage >= 0 && static_cast<size_t>(p.storage) < problem_.storages.size();
      const bool is_op = p.workspace_of >= 0 &&
                         static_cast<size_t>(p.workspace_of) < problem_.operators.size();
      if (is_storage == is_op) {
        report("a placement must name one storage or one workspace");
        return false;
      }
      if (p.offset < Offset() || p.begin < 0 || p.end < p.begin ||
          p.end > static_cast<int64_t>(plan_.order.size()) || p.size < Bytes(0) ||
          (p.end > p.begin && p.offset.value() > plan_.peak.count() - p.size.count())) {
        report(owner(p) + " lies outside the arena or the step");
        continue;
      }
      if (is_storage) {
        ++of_storage[p.storage];
        const Storage& s = problem_.storages[p.storage];
        if (s.alias_of != kNone) report(owner(p) + " is an alias but has its own placement");
        if (p.size != s.size) report(owner(p) + " is placed with the wrong size");
        const std::set<int64_t>& uses = uses_[p.storage];
        if (!uses.empty() && (*uses.begin() < p.begin || *uses.rbegin() >= p.end)) {
          report(owner(p) + " is used outside [" + std::to_string(p.begin) + ", " +
                 std::to_string(p.end) + ")");
        }
      } else {
        ++of_op[p.workspace_of];
        if (p.size != problem_.operators[p.workspace_of].workspace) {
          report(owner(p) + " is placed with the wrong size");
        }
        if (time_[p.workspace_of] < p.begin || time_[p.workspace_of] >= p.end) {
          report(owner(p) + " is not live when its operator runs");
        }
      }
    }
    for (size_t i = 0; i < problem_.storages.size(); ++i) {
      const auto id = static_cast<StorageId>(i);
      if (problem_.storages[i].alias_of == kNone && of_storage[id] != 1) {
        report(storage(id) + " has " + std::to_string(of_storage[id]) + " placements");
      }
    }
    for (size_t i = 0; i < problem_.operators.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      if (problem_.operators[i].workspace > Bytes(0) && of_op[id] != 1) {
        report("workspace of " + op(id) + " has " + std::to_string(of_op[id]) + " placements");
      }
    }
    return found_.empty();
  }

  void check_in_place() {
    for (const InPlace& pair : plan_.in_place) {
      const auto& allowed = problem_.may_be_in_place;
      if (std::find(allowed.begin(), allowed.end(), pair) == allowed.end()) {
        report("an in-place pair that is not in the problem");
        continue;
      }
      const std::string where = op(pair.op) + " in place on " + storage(pair.input);
      if (*uses_[pair.input].rbegin() != time_[pair.op])
        report(where + ", which is used later");
      if (problem_.storages[pair.input].at_end) report(where + ", which is needed at the end");
      if (*uses_[pair.output].begin() != time_[pair.op])
        report(where + ": output used earlier");
      if (!given_.insert(pair.input).second) report(where + ": its space is reused twice");
      if (!taken_.insert(pair.output).second)
        report(where + ": its output takes over two storages");
      pairs_.insert({pair.input, pair.output});
    }
  }

  bool may_share(const Placement& a, const Placement& b) const {
    for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      // They overlap only while the operator runs: one ends with it, the other begins with it.
      if (pairs_.contains({x->storage, y->storage}) && x->end == y->begin + 1) return true;
    }
    return false;
  }

  // Sweeps over time; resident placements must lie side by side.
  void check_space() {
    std::vector<std::pair<int64_t, size_t>> begins;
    for (size_t k = 0; k < plan_.placements.size(); ++k) {
      const Placement& p = plan_.placements[k];
      if (p.size > Bytes(0) && p.end > p.begin) begins.emplace_back(p.begin, k);
    }
    std::sort(begins.begin(), begins.end());
    std::multimap<int64_t, size_t> by_end;
    // Resident placements by offset. Those that begin below an end are checked from the highest
    // down, until none can reach it.
    std::multimap<int64_t, size_t> resident;
    Bytes widest{0};
    for (const auto& [now, k] : begins) {
      while (!by_end.empty() && by_end.begin()->first <= now) {
        const size_t gone = by_end.begin()->second;
        auto [at, stop] = resident.equal_range(plan_.placements[gone].offset.value());
        while (at != stop && at->second != gone) ++at;
        resident.erase(at);
        by_end.erase(by_end.begin());
      }
      const Placement& p = plan_.placements[k];
      const int64_t bottom = p.offset.value(), top = bottom + p.size.count();
      auto at = resident.lower_bound(top);
      while (at != resident.begin()) {
        --at;
        const Placement& q = plan_.placements[at->second];
        if (at->first + widest.count() <= bottom) break;
        if (at->first + q.size.count() > bottom && !may_share(p, q)) {
          report(owner(p) + " and " + owner(q) + " share bytes at position " +
                 std::to_string(now));
        }
      }
      widest = std::max(widest, p.size);
      resident.emplace(bottom, k);
      by_end.emplace(p.end, k);
    }
  }

  void check_freedom() {
    for (const auto& [a, b] : stream_clashes(problem_, plan_)) {
      report(owner(plan_.placements[a]) + " and " + owner(plan_.placements[b]) +
             " share bytes, and their users may run at the same time");
    }
  }

  void check_figures() {
    Offset top;
    std::vector<int64_t> change(plan_.order.size() + 1, 0);
    for (const Placement& p : plan_.placements) {
      if (p.end == p.begin || p.size == Bytes(0)) continue;
      top = std::max(top, p.offset + p.size);
      change[p.begin] += p.size.count();
      change[p.end] -= p.size.count();
    }
    // An output in place takes no bytes of its own while its operator runs.
    for (const InPlace& pair : plan_.in_place) {
      const int64_t both = std::min(problem_.storages[pair.input].size.count(),
                                    problem_.storages[pair.output].size.count());
      change[time_[pair.op]] -= both;
      change[time_[pair.op] + 1] += both;
    }
    int64_t load = 0, most = 0;
    for (const int64_t c : change) most = std::max(most, load += c);
    if (top - Offset() != plan_.peak) {
      report("the peak is " + std::to_string(top.value()) + ", not " +
             std::to_string(plan_.peak.count()));
    }
    if (most != plan_.load.count()) {
      report("the load is " + std::to_string(most) + ", not " +
             std::to_string(plan_.load.count()));
    }
    if (plan_.bound > plan_.peak) report("the bound is above the peak");
    if (problem_.budget > Bytes(0) && plan_.peak > problem_.budget) {
      report("the peak is above the budget");
    }
  }

  const Problem& problem_;
  const Plan& plan_;
  size_t limit_;
  std::vector<std::string> found_;
  std::vector<int64_t> time_;            // per operator
  std::vector<std::set<int64_t>> uses_;  // per storage
  std::set<std::pair<StorageId, StorageId>> pairs_;
  std::set<StorageId> given_, taken_;
};

}  // namespace

std::vector<std::string> violations(const Problem& problem, const Plan& plan, size_t limit) {
  return Validator(problem, plan, limit).run();
}

std::vector<std::string> layout_violations(const std::vector<Buffer>& buffers,
                                           const Offsets& offsets, Bytes height, size_t limit) {
  if (offsets.size() != buffers.size()) return {"not one offset per buffer"};
  std::vector<std::string> found;
  const auto report = [&](const std::string& what) {
    if (found.size() < limit) found.push_back(what);
  };
  std::vector<std::pair<int64_t, size_t>> by_begin, by_end;
  int64_t top = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    if (b.size == Bytes(0) || b.begin == b.end) continue;
    const int64_t offset = offsets[i].value();
    if (offset < 0 || offset > height.count() - b.size.count()) {
      report("buffer " + std::to_string(i) + " lies outside the arena");
      continue;
    }
    top = std::max(top, offset + b.size.count());
    by_begin.emplace_back(b.begin, i);
    by_end.emplace_back(b.end, i);
  }
  if (found.empty() && top != height.count()) {
    report("the height is " + std::to_string(top) + ", not " + std::to_string(height.count()));
  }
  std::sort(by_begin.begin(), by_begin.end());
  std::sort(by_end.begin(), by_end.end());
  std::map<int64_t, size_t> resident;  // by offset; disjoint, or the sweep has ended
  size_t gone = 0;
  for (const auto& [now, i] : by_begin) {
    for (; gone < by_end.size() && by_end[gone].first <= now; ++gone) {
      resident.erase(offsets[by_end[gone].second].value());
    }
    const auto clash = [buffer = i, time = now](size_t other) {
      return "buffers " + std::to_string(buffer) + " and " + std::to_string(other) +
             " share bytes at time " + std::to_string(time);
    };
    const int64_t offset = offsets[i].value();
    const auto above = resident.lower_bound(offset);
    if (above != resident.end() && above->first < offset + buffers[i].size.count()) {
      report(clash(above->second));
      break;
    }
    if (above != resident.begin()) {
      const auto below = std::prev(above);
      if (below->first + buffers[below->second].size.count() > offset) {
        report(clash(below->second));
        break;
      }
    }
    resident.emplace(offset, i);
  }
  return found;
}

}  // namespace tidemark::planner
