// All decisions about a step. For each gap: keep the unused storage, evict it, or offload it
// and when to bring it back. A plan is one choice per gap. Changes can be undone.
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
  // The gaps of items of at least `smallest` bytes, by first call, with choices as in `draft`.
  // REQUIRES: the step and the limits outlive this object.
  ReleaseChoices(const StepTable& step, const PlanLimits& limits,
                 const std::vector<PlannedRelease>& draft, Bytes smallest);

  size_t size() const { return choices_.size(); }
  bool released(size_t i) const { return choices_[i].released; }
  bool may_evict(size_t i) const;
  bool may_offload(size_t i) const;
  // Whether both would be away at some time, if both are released.
  bool meet(size_t i, size_t k) const;
  // The gaps between the same uses of outputs of the same kind of call, such as those of a
  // network's layers, in order. Includes the gap itself.
  const std::vector<size_t>& alike(size_t i) const { return kinds_[kind_of_[i]]; }
  Bytes bytes(size_t i) const { return item(i).bytes; }
  // The call after which the gap begins.
  uint32_t from(size_t i) const { return choices_[i].release.from; }

  void keep(size_t i);
  // REQUIRES: may_evict(i).
  void evict(size_t i);
  // As can_leave_before_end().
  bool may_leave_before_end(size_t i) const;
  // Offloads; the copy back begins `lead` times its own duration before the storage is needed.
  // REQUIRES: may_offload(i), and may_leave_before_end(i) for `before_end`.
  void offload(size_t i, double lead, bool before_end = false);

  // Whether anything has changed since the last settle() or take_back().
  bool changed() const { return !changes_.empty(); }
  void settle() { changes_.clear(); }
  void take_back();

  // The plan, ordered by call.
  void write(std::vector<PlannedRelease>& releases) const;
  // Total bytes of the storages that are offloaded.
  Bytes copied() const { return copied_; }

 private:
  struct Choice {
    PlannedRelease release;
    bool released = false;
  };
  const StepTable::Item& item(size_t i) const { return step_->items[choices_[i].release.item]; }
  void set(size_t i, const Choice& choice);
  void replace(size_t i, const Choice& choice);
  void count_copies(const Choice& choice, int change);
  uint32_t back_at(const PlannedRelease& release, double lead) const;
  void find_alike();

  const StepTable* step_;
  const PlanLimits* limits_;
  std::vector<Choice> choices_;
  std::vector<std::pair<size_t, Choice>> changes_;  // with the choices before
  std::vector<int> copies_;  // by item: its gaps in which it is offloaded
  Bytes copied_{0};
  std::vector<size_t> kind_of_;
  std::vector<std::vector<size_t>> kinds_;
};

}  // namespace tidemark::planner
