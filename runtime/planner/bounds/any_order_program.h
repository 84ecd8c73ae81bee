// The linear program of the bound for any order (any_order_bound.h), for some operators looked
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

// The intervals in which an operator may run, both included. Interval i ends when operator i of
// those looked at starts.
struct Span {
  uint32_t earliest = 0, latest = 0;
};

class AnyOrderProgram {
 public:
  // `looked_at`: operators on one path of dependences, in order, at least one; `spans`: by
  // operator; `wait`: milliseconds that compute waits for uploads in interval 0. REQUIRES:
  // `step` outlives this object.
  AnyOrderProgram(const IdleGaps& step, const PlanLimits& limits,
                  std::vector<uint32_t> looked_at, std::vector<Span> spans, double wait);

  const LinearProgram& program() const { return program_; }

 private:
  using Variable = LinearProgram::Variable;
  using Term = LinearProgram::Term;
  using Terms = std::vector<Term>;
  // What a schedule may do with a storage: by moment (the start of an operator looked at), and
  // by interval. None: it cannot, or it does not matter.
  struct Storage {
    using Variables = std::vector<std::optional<Variable>>;
    Variables present, exists;     // P, E
    Variables copied;              // U, also at the step's end and in the next step
    Variables again, first, back;  // y, f, r
  };
  // Until when a storage has to come back if it is not there at a moment.
  struct Return {
    uint32_t moment, latest;  // an interval; of the next step: that of this step plus all
  };

  bool has_tier() const { return in_per_ms_ > 0; }
  uint32_t intervals() const { return moments_ + 1; }
  bool uses(uint32_t moment, uint32_t storage) const { return used_[moment][storage]; }
  bool is_tracked(uint32_t storage) const;
  bool may_copy(uint32_t storage) const;
  bool may_run_again(uint32_t storage) const;
  uint32_t exists_from(uint32_t storage) const;
  std::optional<Span> last_write(uint32_t storage) const;
  uint32_t back_for(uint32_t op) const;
  std::vector<Return> returns(uint32_t storage) const;

  void find_used();
  int64_t needed(uint32_t moment) const;
  void add_calls();
  void add_variables(uint32_t storage);
  void add_copied(uint32_t storage, Storage& its);
  void add_rows(uint32_t storage);
  void add_existence(uint32_t storage);
  void came(Terms& terms, uint32_t storage, uint32_t interval, double factor) const;
  void add_operands(uint32_t storage);
  void add_first_run(uint32_t storage, const std::vector<Return>& returns);
  void add_way_to_run(const Storage& its, const Storage& input);
  void add_copies(uint32_t storage);
  void add_memory(int64_t budget);
  void add_links();

  const IdleGaps& step_;
  const double out_per_ms_, in_per_ms_;  // bytes; 0: no tier
  const std::vector<uint32_t> looked_at_;
  const std::vector<Span> spans_;
  const uint32_t moments_;
  LinearProgram program_;
  std::vector<double> length_;           // of an interval's own calls
  std::vector<Terms> added_;             // by interval: what may make it longer
  std::vector<Terms> out_, in_;          // by interval
  std::vector<Terms> memory_;            // by moment
  std::vector<int64_t> always_;          // by moment: bytes that cannot be away
  std::map<uint32_t, Storage> its_;      // by storage
  std::vector<std::vector<bool>> used_;  // by moment, by storage
};

}  // namespace tidemark::planner
