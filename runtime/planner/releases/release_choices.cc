#include "runtime/planner/releases/release_choices.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tidemark::planner {

ReleaseChoices::ReleaseChoices(const StepTable& step, const PlanLimits& limits,
                               const std::vector<PlannedRelease>& draft, Bytes smallest)
    : step_(&step), limits_(&limits), copies_(step.items.size()) {
  for (const Gap& gap : find_gaps(step, smallest)) {
    choices_.push_back({{gap.item, gap.from, gap.to, Release::kEvict, 0}, false});
    const size_t last = choices_.size() - 1;
    if (!may_evict(last) && !may_offload(last)) choices_.pop_back();
  }
  std::stable_sort(choices_.begin(), choices_.end(), [](const Choice& a, const Choice& b) {
    return a.release.from < b.release.from;
  });
  for (const PlannedRelease& release : draft) {
    const auto choice = std::find_if(choices_.begin(), choices_.end(), [&](const Choice& c) {
      return c.release.item == release.item && c.release.from == release.from &&
             c.release.to == release.to;
    });
    if (choice == choices_.end()) continue;
    replace(static_cast<size_t>(choice - choices_.begin()), {release, true});
  }
  find_alike();
}

void ReleaseChoices::find_alike() {
  using Alike = std::tuple<uint64_t, int64_t, bool, ptrdiff_t>;
  std::map<Alike, size_t> seen;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const StepTable::Item& it = item(i);
    const bool made = it.producer != StepTable::kNone;
    const uint64_t signature = made ? step_->calls[it.producer].signature : 0;
    const auto use = std::lower_bound(it.uses.begin(), it.uses.end(), from(i));
    const Alike kind{signature, it.bytes.count(), made, use - it.uses.begin()};
    const auto [known, fresh] = seen.try_emplace(kind, kinds_.size());
    if (fresh) kinds_.emplace_back();
    kind_of_.push_back(known->second);
    kinds_[known->second].push_back(i);
  }
}

bool ReleaseChoices::may_evict(size_t i) const {
  return item(i).may_evict && item(i).producer != StepTable::kNone &&
         !choices_[i].release.wraps() && choices_[i].release.to < step_->calls.size();
}

bool ReleaseChoices::may_offload(size_t i) const {
  return limits_->tier_space > Bytes(0) && item(i).may_offload;
}

bool ReleaseChoices::may_leave_before_end(size_t i) const {
  return can_leave_before_end(*step_, *limits_, choices_[i].release);
}

bool ReleaseChoices::meet(size_t i, size_t k) const {
  const PlannedRelease &a = choices_[i].release, &b = choices_[k].release;
  return a.from < b.to && b.from < a.to;
}

void ReleaseChoices::keep(size_t i) {
  Choice choice = choices_[i];
  choice.released = false;
  set(i, choice);
}

void ReleaseChoices::evict(size_t i) {
  Choice choice{choices_[i].release, true};
  choice.release.action = Release::kEvict;
  choice.release.reload_at = 0;
  choice.release.leaves_before_end = false;
  set(i, choice);
}

void ReleaseChoices::offload(size_t i, double lead, bool before_end) {
  Choice choice{choices_[i].release, true};
  choice.release.action = Release::kOffload;
  choice.release.reload_at = back_at(choice.release, lead);
  choice.release.leaves_before_end = before_end;
  set(i, choice);
}

void ReleaseChoices::set(size_t i, const Choice& choice) {
  const Choice& before = choices_[i];
  const bool same = before.released == choice.released &&
                    (!choice.released || before.release == choice.release);
  if (same) return;
  changes_.emplace_back(i, before);
  replace(i, choice);
}

void ReleaseChoices::replace(size_t i, const Choice& choice) {
  count_copies(choices_[i], -1);
  choices_[i] = choice;
  count_copies(choices_[i], +1);
}

void ReleaseChoices::take_back() {
  for (; !changes_.empty(); changes_.pop_back()) {
    replace(changes_.back().first, changes_.back().second);
  }
}

uint32_t ReleaseChoices::back_at(const PlannedRelease& release, double lead) const {
  if (release.to == step_->calls.size()) return release.to;  // not in this step
  const Nanos wanted = step_->calls[release.to].begin;
  const Nanos time = limits_->in_time(step_->items[release.item].bytes);
  const auto early = Nanos(static_cast<int64_t>(static_cast<double>(time.count()) * lead));
  const uint32_t least = release.wraps() ? 0 : release.from + 1;
  uint32_t at = release.to == 0 ? 0 : release.to - 1;
  while (at > least && step_->calls[at].begin + early > wanted) --at;
  return at;
}

void ReleaseChoices::write(std::vector<PlannedRelease>& releases) const {
  releases.clear();
  for (const Choice& choice : choices_) {
    if (choice.released) releases.push_back(choice.release);
  }
}

// A storage has one copy, however often it goes.
void ReleaseChoices::count_copies(const Choice& choice, int change) {
  if (!choice.released || choice.release.action != Release::kOffload) return;
  int& copies = copies_[choice.release.item];
  if (copies == 0) copied_ += step_->items[choice.release.item].bytes;
  copies += change;
  if (copies == 0) copied_ -= step_->items[choice.release.item].bytes;
}

}  // namespace tidemark::planner
