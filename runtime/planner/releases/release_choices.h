// All that can be decided about a step: for each gap that nothing happens, that what sleeps
// there is evicted, or that it is copied out and when it comes back. A plan is a choice for
// each of them. Changes can be taken back.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/planner/releases/release_draft.h"

namespace tidemark::planner {

class ReleaseChoices {
 public:
  // Gaps of items of at least that size, by their first call. As `draft` has it.
  // REQUIRES: the step and the limits outlive it.
  ReleaseChoices(const StepTable& step, const PlanLimits& limits,
                 const std::vector<PlannedRelease>& draft, Bytes smallest);

  size_t size() const { return choices_.size(); }
  bool released(size_t i) const { return choices_[i].released; }
  bool may_evict(size_t i) const;
  bool may_offload(size_t i) const;
  // Are both away at some time, if both are released?
  bool meet(size_t i, size_t k) const;
  // Gaps between the same uses of what the same kind of call makes, itself among them, in
  // order: those of a network's layers.
  const std::vector<size_t>& alike(size_t i) const { return kinds_[kind_of_[i]]; }
  Bytes bytes(size_t i) const { return item(i).bytes; }
  // The call after which the gap begins.
  uint32_t from(size_t i) const { return choices_[i].release.from; }

  void keep(size_t i);
  // REQUIRES: it may be.
  void evict(size_t i);
  // Coming back so many times the copy's own time before it is wanted.
  // REQUIRES: it may be.
  void offload(size_t i, double lead);

  // Has anything been changed since they were settled or taken back?
  bool changed() const { return !changes_.empty(); }
  void settle() { changes_.clear(); }
  void take_back();

  // The plan, by call.
  void write(std::vector<PlannedRelease>& releases) const;
  // Of all that is copied out.
  Bytes copied() const;

 private:
  struct Choice {
    PlannedRelease release;
    bool released = false;
  };
  const StepTable::Item& item(size_t i) const { return step_->items[choices_[i].release.item]; }
  void set(size_t i, const Choice& choice);
  uint32_t back_at(const PlannedRelease& release, double lead) const;
  void find_alike();

  const StepTable* step_;
  const PlanLimits* limits_;
  std::vector<Choice> choices_;
  std::vector<std::pair<size_t, Choice>> changes_;  // and what was there before
  std::vector<size_t> kind_of_;
  std::vector<std::vector<size_t>> kinds_;
};

}  // namespace tidemark::planner
