// What the bound on a step's time (time_bound.h) knows of a step in the trace's order: which
// bytes each operator uses, and the gaps in which storages are not used.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// A storage while no operator uses it. Operators are those of the trace, by number.
struct IdleGap {
  enum class Kind : uint8_t {
    kBetween,  // two operators that use it, first < last
    kOver,     // its last use, and the first of the next step: of what lives through
    kBefore,   // before its first use: made by an earlier step
    kAfter,    // after its last use: made for a later step
    kTail,     // after its last use, wanted only to compute something again
  };
  uint32_t storage = 0;
  Kind kind = Kind::kBetween;
  uint32_t first = 0;  // the last operator that uses it before the gap
  uint32_t last = 0;   // the first one after it, maybe in the next step; kTail: the step's end
  uint32_t version = 0;
  // An earlier step wrote this version, and a copy of it may have been made there.
  bool from_before = false;

  bool ends_in_use() const { return kind <= Kind::kBefore; }
  bool must_exist() const { return kind != Kind::kTail; }
};

// Smaller storages do not count.
inline constexpr int64_t kSmallestIdle = 1 << 16;

class IdleGaps {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  // REQUIRES: trace_violations() finds nothing; the trace outlives this object.
  explicit IdleGaps(const StepTrace& trace);

  // Gaps of storages of at least kSmallestIdle bytes; tails last.
  const std::vector<IdleGap>& gaps() const { return gaps_; }

  const StepTrace& trace() const { return trace_; }
  uint32_t calls() const { return static_cast<uint32_t>(trace_.ops.size()); }
  // The operators that use the storage, in order.
  const std::vector<uint32_t>& uses(uint32_t storage) const { return uses_[storage]; }
  // Those of them that write it in place.
  const std::vector<uint32_t>& writes(uint32_t storage) const { return writes_[storage]; }
  // Whether it may be away at the step's end and come back in the next step, and counts.
  bool is_state(uint32_t storage) const {
    return lives_through_[storage] && size(storage) >= kSmallestIdle;
  }
  int64_t size(uint32_t storage) const { return trace_.storages[storage].size.count(); }
  // Bytes that a copy moves, at least: without what alignment adds.
  double copied_bytes(uint32_t storage) const;
  // When each operator begins if nothing is added, and the end; milliseconds.
  double begins(uint32_t op) const { return begins_[op]; }
  double total() const { return begins_.back(); }
  // Bytes that the operator uses, workspace included; in place where it can be.
  int64_t used(uint32_t op) const { return used_[op]; }
  int64_t most_used() const;
  // The same with what is in gaps then.
  int64_t live(uint32_t op) const { return live_[op]; }

  // At most `most` calls at which more than `budget` is live: of each stretch of these, the one
  // with most; and some between them.
  std::vector<uint32_t> fullest(int64_t budget, uint32_t most) const;
  // Milliseconds that compute waits for what is uploaded before the first call, up to operator
  // `last`: only its readers wait.
  double upload_wait(double bytes_per_ms, uint32_t last) const;

  // The operator that wrote a version; none: a tier has a copy from the beginning.
  std::optional<uint32_t> written_by(uint32_t storage, uint32_t version) const;
  bool can_run_again(const IdleGap& gap) const;
  // REQUIRES: a call of this step made the storage.
  const StepTrace::Op& maker(uint32_t storage) const { return trace_.ops[maker_[storage]]; }
  // What a recomputation for this storage costs: a call is paid for its largest output.
  double price(uint32_t storage) const;

 private:
  void add_op(uint32_t op);
  bool runs_in_place(uint32_t op) const;
  bool is_call(uint32_t op) const { return trace_.ops[op].kind == StepTrace::Kind::kCall; }
  void add_between(std::vector<uint32_t>& chosen, double apart) const;
  void add_gaps(uint32_t storage);
  void add_gaps_around(uint32_t storage);
  void add_tails();
  uint32_t last_version(uint32_t storage) const {
    return static_cast<uint32_t>(writes_[storage].size());
  }
  uint32_t version_after(uint32_t storage, uint32_t op) const;

  const StepTrace& trace_;
  std::vector<std::vector<uint32_t>> uses_, writes_;  // by storage: operators
  std::vector<uint32_t> maker_;                       // by storage
  std::vector<bool> uploaded_, lives_through_;
  std::vector<int64_t> used_, live_;  // by operator: bytes that it uses; and those in gaps
  std::vector<double> begins_;
  std::vector<IdleGap> gaps_;
};

// Of each of `most` stretches of these operators, or fewer, the one where most is `live`.
std::vector<uint32_t> fullest_of_stretches(const std::vector<uint32_t>& operators,
                                           const std::vector<int64_t>& live, uint32_t most);

// The unit of sizes in the bounds' programs, where times are in milliseconds and variables are
// shares: the coefficients of all rows are then of similar magnitude.
inline constexpr double kBytesPerUnit = 1e9;
// What a link moves; 0: there is no tier.
inline double bytes_per_ms(double bandwidth, const PlanLimits& limits) {
  return limits.tier_space > Bytes(0) ? bandwidth / 1e3 : 0;
}

}  // namespace tidemark::planner
