// The linear program of the bound on a step's time (time_bound.h), for some operators looked
// at.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/planner/bounds/idle_gaps.h"
#include "runtime/planner/bounds/linear_program.h"
#include "runtime/schedule/plan_limits.h"

namespace tidemark::planner {

class StepProgram {
 public:
  // `looked_at`: operators, in order, at least one. REQUIRES: `step` outlives this object.
  StepProgram(const IdleGaps& step, const PlanLimits& limits, std::vector<uint32_t> looked_at);

  const LinearProgram& program() const { return program_; }
  // Milliseconds that compute waits for uploads in interval 0. Of a later wait nothing is
  // known: what the program adds may lie in it.
  double wait() const { return wait_; }

 private:
  using Variable = LinearProgram::Variable;
  using Term = LinearProgram::Term;
  using Terms = std::vector<Term>;
  // Moments are the starts of the operators looked at, then the step's end, then those of the
  // next step, which is like this one. Interval j ends at moment j.
  struct Moments {
    uint32_t begin = 0, end = 0;  // [begin, end)
  };
  // Of a storage, at a moment and in the interval from there on.
  struct Share {
    Variable present = 0;
    // `exists`: in memory or on a tier; none: always.
    std::optional<Variable> again, first, back, exists;
    uint32_t gap_begin = 0, gap_end = 0;  // the gap's moments
  };
  using Key = std::pair<uint32_t, uint32_t>;  // storage, moment of the step

  uint32_t first_after(uint32_t op) const;
  uint32_t first_from(uint32_t op) const;
  uint32_t moments() const { return count_ + 1; }
  uint32_t in_step(uint32_t moment) const { return moment % moments(); }
  uint32_t interval_from(uint32_t moment) const { return (moment + 1) % moments(); }
  Moments moments_in(const IdleGap& gap) const;
  const Share& share(uint32_t storage, uint32_t moment) const {
    return shares_.at({storage, in_step(moment)});
  }
  double in_units(uint32_t storage) const;
  double copied(uint32_t storage) const;

  void add_variables(const IdleGap& gap, const Moments& in);
  Variable copy(uint32_t storage, uint32_t version, uint32_t moment);
  void find_used();
  void came(Terms& terms, uint32_t storage, uint32_t moment, double factor) const;
  void add_rows(const IdleGap& gap, const Moments& in);
  void add_existence(const IdleGap& gap, const Moments& in, uint32_t moment, Terms later_runs);
  void add_first_run(const IdleGap& gap, const Moments& in);
  void add_way_to_run(const IdleGap& gap, const Moments& in, uint32_t input);
  void add_operands(uint32_t storage, uint32_t moment, Variable again);
  void add_copies();
  void add_memory(int64_t budget);
  void add_links();
  void add_link(Terms bytes, double per_ms, uint32_t interval, double length);

  const IdleGaps& step_;
  const double out_per_ms_, in_per_ms_;  // bytes; 0: no tier
  const std::vector<uint32_t> looked_at_;
  const double wait_;
  const uint32_t count_;
  LinearProgram program_;
  std::vector<std::pair<IdleGap, Moments>> gaps_;
  std::vector<Variable> added_;         // w, by interval
  std::vector<Terms> runs_, out_, in_;  // by interval
  std::vector<Terms> memory_;           // by operator looked at
  std::map<Key, Share> shares_;
  std::map<Key, std::map<uint32_t, Variable>> copies_;  // by storage and version; by moment
  std::vector<std::vector<bool>> used_;                 // by operator looked at; by storage
};

}  // namespace tidemark::planner
