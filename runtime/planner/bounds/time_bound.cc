#include "runtime/planner/bounds/time_bound.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "runtime/planner/bounds/linear_program.h"
#include "runtime/schedule/step_table.h"

namespace tidemark::planner {
namespace {

constexpr int64_t kSmall = 1 << 16;
constexpr int64_t kMaxPadding = 511;  // of a storage's size, because of alignment
// Variables are shares; times are in milliseconds and sizes in this unit, so that the
// coefficients of all rows are of similar magnitude.
constexpr double kUnit = 1e9;

using Variable = LinearProgram::Variable;
using Terms = std::vector<LinearProgram::Term>;

// A storage between two calls that use it, first < last; or, a tail, past its last use.
struct IdleGap {
  uint32_t storage = 0;
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t version = 0;
  bool tail = false;
  uint32_t begin = 0, end = 0;  // the calls looked at in it, [begin, end)
};

double milliseconds(Nanos time) { return static_cast<double>(time.count()) * 1e-6; }

class Step {
 public:
  Step(const StepTrace& trace, const PlanLimits& limits)
      : trace_(trace),
        out_per_ms_(limits.tier_space > Bytes(0) ? limits.out_bandwidth / 1e3 : 0),
        in_per_ms_(limits.tier_space > Bytes(0) ? limits.in_bandwidth / 1e3 : 0),
        in_upload_per_ms_(limits.in_bandwidth / 1e3),
        uses_(trace.storages.size()),
        writes_(trace.storages.size()),
        maker_(trace.storages.size(), kNone),
        uploaded_(trace.storages.size(), false),
        used_(trace.ops.size(), 0),
        begins_{0.0} {
    for (const StepTrace::Op& op : trace.ops)
      begins_.push_back(begins_.back() + milliseconds(op.cost));
    for (uint32_t k = 0; k < trace.ops.size(); ++k) add_op(k);
    live_ = used_;
    for (uint32_t s = 0; s < uses_.size(); ++s) add_gaps(s);
  }

  uint32_t calls() const { return static_cast<uint32_t>(trace_.ops.size()); }
  double total() const { return begins_.back(); }
  int64_t most_used() const { return *std::max_element(used_.begin(), used_.end()); }

  // At most `most` calls at which too much is live: of each stretch of these, the fullest.
  std::vector<uint32_t> fullest_calls(int64_t budget, uint32_t most) const {
    std::vector<uint32_t> over;
    for (uint32_t k = 0; k < calls(); ++k) {
      if (live_[k] > budget) over.push_back(k);
    }
    std::vector<uint32_t> chosen;
    const size_t stretches = std::min<size_t>(most, over.size());
    for (size_t i = 0; i < stretches; ++i) {
      const auto begin = over.begin() + static_cast<int64_t>(i * over.size() / stretches);
      const auto end = over.begin() + static_cast<int64_t>((i + 1) * over.size() / stretches);
      chosen.push_back(*std::max_element(
          begin, end, [this](uint32_t a, uint32_t b) { return live_[a] < live_[b]; }));
    }
    return chosen;
  }

  // How long compute waits for what is uploaded before the first call.
  double upload_wait() const {
    double done = 0, wait = 0;
    for (const StepTrace::Op& op : trace_.ops) {
      if (op.kind == StepTrace::Kind::kCall) break;
      if (op.kind != StepTrace::Kind::kUpload) continue;
      const uint32_t s = op.outputs.front();
      done += copied_bytes(s) / in_upload_per_ms_;
      const auto reads = [&](uint32_t k) { return reads_input(k, s); };
      const auto first = std::find_if(uses_[s].begin(), uses_[s].end(), reads);
      wait = std::max(wait, done - begins_[first == uses_[s].end() ? calls() : *first]);
    }
    return wait;
  }

  // The least time added, in milliseconds, looking at these calls.
  double added(int64_t budget, const std::vector<uint32_t>& points,
               const TimeBoundOptions& options) const;

 private:
  static constexpr uint32_t kNone = ~0U;
  friend class Formulation;

  int64_t size(uint32_t s) const { return trace_.storages[s].size.count(); }
  double copied_bytes(uint32_t s) const {
    return static_cast<double>(std::max<int64_t>(size(s) - kMaxPadding, 0));
  }
  bool reads_input(uint32_t k, uint32_t s) const {
    const auto& inputs = trace_.ops[k].inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [s](const StepTrace::Input& input) { return input.storage == s; });
  }
  void add_op(uint32_t k) {
    const StepTrace::Op& op = trace_.ops[k];
    const auto use = [&](uint32_t s) {
      if (!uses_[s].empty() && uses_[s].back() == k) return;
      uses_[s].push_back(k);
      used_[k] += size(s);
    };
    used_[k] = op.workspace.count();
    for (const StepTrace::Input& input : op.inputs) {
      use(input.storage);
      if (input.written) writes_[input.storage].push_back(k);
    }
    for (const uint32_t s : op.outputs) {
      use(s);
      if (op.kind == StepTrace::Kind::kCall) maker_[s] = k;
      if (op.kind == StepTrace::Kind::kUpload) uploaded_[s] = true;
    }
    if (runs_in_place(k)) used_[k] -= size(op.outputs.front());
  }
  // Whether the first output may take the space of an input that is dropped after the operator.
  bool runs_in_place(uint32_t k) const {
    const std::vector<uint32_t>& inputs = trace_.ops[k].may_overwrite;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](uint32_t s) { return dies_in_place(trace_, k, s); });
  }
  void add_gaps(uint32_t s) {
    if (size(s) < kSmall) return;
    for (size_t i = 0; i + 1 < uses_[s].size(); ++i) {
      const uint32_t a = uses_[s][i], b = uses_[s][i + 1];
      if (b == a + 1) continue;
      gaps_.push_back({s, a, b, version_after(s, a)});
      for (uint32_t k = a + 1; k < b; ++k) live_[k] += size(s);
    }
  }
  // The number of in-place writes up to call k.
  uint32_t version_after(uint32_t s, uint32_t k) const {
    return static_cast<uint32_t>(std::upper_bound(writes_[s].begin(), writes_[s].end(), k) -
                                 writes_[s].begin());
  }
  // The call that wrote a version; none: a tier has it from the beginning.
  std::optional<uint32_t> written_by(uint32_t s, uint32_t version) const {
    if (version > 0) return writes_[s][version - 1];
    if (trace_.storages[s].at_start || uploaded_[s]) return std::nullopt;
    return uses_[s].front();
  }
  bool can_run_again(const IdleGap& gap) const {
    const StepTrace::Storage& storage = trace_.storages[gap.storage];
    return maker_[gap.storage] != kNone && gap.version == 0 && !storage.at_start &&
           storage.may_evict;
  }
  // What a recomputation for this storage costs: a call is paid for its largest output.
  double price(uint32_t s) const {
    const auto& outputs = trace_.ops[maker_[s]].outputs;
    const uint32_t payer =
        *std::max_element(outputs.begin(), outputs.end(),
                          [this](uint32_t a, uint32_t b) { return size(a) < size(b); });
    return payer == s ? milliseconds(trace_.ops[maker_[s]].cost) : 0.0;
  }
  // What is wanted after its last use, only to compute something again.
  std::vector<IdleGap> tails() const {
    std::map<uint32_t, IdleGap> found;
    for (const IdleGap& gap : gaps_) {
      if (!can_run_again(gap)) continue;
      for (const StepTrace::Input& input : trace_.ops[maker_[gap.storage]].inputs) {
        const uint32_t x = input.storage;
        const StepTrace::Storage& storage = trace_.storages[x];
        const uint32_t last = uses_[x].back();
        if (size(x) < kSmall || storage.at_start || storage.at_end || last + 1 >= gap.last)
          continue;
        found.try_emplace(
            x, IdleGap{x, last, calls(), static_cast<uint32_t>(writes_[x].size()), true});
      }
    }
    std::vector<IdleGap> tails;
    tails.reserve(found.size());
    for (auto& [storage, gap] : found) tails.push_back(gap);
    return tails;
  }

  const StepTrace& trace_;
  const double out_per_ms_, in_per_ms_;  // bytes; 0: no tier
  const double in_upload_per_ms_;
  std::vector<std::vector<uint32_t>> uses_, writes_;  // by storage: calls
  std::vector<uint32_t> maker_;                       // by storage
  std::vector<bool> uploaded_;
  std::vector<int64_t> used_, live_;  // by call: bytes that it uses; and those in gaps
  std::vector<double> begins_;        // of each call, and the end; milliseconds
  std::vector<IdleGap> gaps_;
};

// The linear program for some calls looked at.
class Formulation {
 public:
  Formulation(const Step& step, int64_t budget, const std::vector<uint32_t>& points)
      : step_(step),
        budget_(budget),
        points_(points),
        count_(static_cast<uint32_t>(points.size())) {
    for (uint32_t j = 0; j <= count_; ++j) {
      added_.push_back(program_.variable(LinearProgram::kUnbounded, 1.0));
    }
    runs_.resize(count_ + 1);
    out_.resize(count_ + 1);
    in_.resize(count_ + 1);
    memory_.resize(count_);
    gaps_ = step.gaps_;
    for (const IdleGap& tail : step.tails()) gaps_.push_back(tail);
    for (IdleGap& gap : gaps_) {
      gap.begin = first_point_after(gap.first);
      gap.end = first_point_from(gap.last);
    }
    std::erase_if(gaps_, [](const IdleGap& gap) { return gap.begin >= gap.end; });
    for (const IdleGap& gap : gaps_) add_variables(gap);
    find_used();
    for (const IdleGap& gap : gaps_) add_rows(gap);
    add_copies();
    add_memory();
    add_links();
  }

  const LinearProgram& program() const { return program_; }

 private:
  // Of a storage, when a call looked at starts and in the interval from there on.
  struct Share {
    Variable present = 0;
    std::optional<Variable> again, back;
  };
  using Key = std::pair<uint32_t, uint32_t>;  // storage, interval

  uint32_t first_point_after(uint32_t call) const {
    return static_cast<uint32_t>(std::upper_bound(points_.begin(), points_.end(), call) -
                                 points_.begin());
  }
  uint32_t first_point_from(uint32_t call) const {
    return static_cast<uint32_t>(std::lower_bound(points_.begin(), points_.end(), call) -
                                 points_.begin());
  }
  double in_units(uint32_t s) const { return static_cast<double>(step_.size(s)) / kUnit; }
  double copied(uint32_t s) const { return step_.copied_bytes(s) / kUnit; }

  // Interval j + 1 of the arrays begins at call looked at j; interval 0 at the step's start.
  void add_variables(const IdleGap& gap) {
    const uint32_t s = gap.storage;
    for (uint32_t j = gap.begin; j < gap.end; ++j) {
      Share share;
      share.present = program_.variable(1.0, 0.0);
      memory_[j].push_back({share.present, in_units(s)});
      if (step_.in_per_ms_ > 0 && step_.trace_.storages[s].may_offload) {
        share.back = program_.variable(1.0, 0.0);
        in_[j + 1].push_back({*share.back, copied(s)});
        if (step_.written_by(s, gap.version)) copy(s, gap.version, j);
      }
      if (step_.can_run_again(gap)) {
        const double price = step_.price(s);
        share.again = program_.variable(1.0, price);
        if (price > 0) runs_[j + 1].push_back({*share.again, price});
      }
      shares_.emplace(Key(s, j), share);
    }
  }
  // U
  Variable copy(uint32_t s, uint32_t version, uint32_t j) {
    auto& by_interval = copies_[{s, version}];
    const auto found = by_interval.find(j);
    if (found != by_interval.end()) return found->second;
    const Variable v = program_.variable(1.0, 0.0);
    by_interval.emplace(j, v);
    return v;
  }
  // By interval: storages used by a call from its beginning to its end, both included.
  void find_used() {
    used_.assign(count_, std::vector<bool>(step_.uses_.size(), false));
    for (uint32_t s = 0; s < step_.uses_.size(); ++s) {
      for (const uint32_t k : step_.uses_[s]) {
        const uint32_t after = first_point_after(k);  // k lies in interval after - 1
        if (after > 0) used_[after - 1][s] = true;
        // A call looked at also ends the interval before.
        if (after > 1 && points_[after - 1] == k) used_[after - 2][s] = true;
      }
    }
  }
  // What of the storage is there, or comes, by the end of interval j; with this factor.
  void came(Terms& terms, uint32_t s, uint32_t j, double factor) const {
    const Share& share = shares_.at({s, j});
    terms.push_back({share.present, factor});
    if (share.again) terms.push_back({*share.again, factor});
    if (share.back) terms.push_back({*share.back, factor});
  }
  void add_rows(const IdleGap& gap) {
    const uint32_t s = gap.storage;
    Terms later_runs;
    for (uint32_t j = gap.end; j-- > gap.begin;) {
      const Share& share = shares_.at({s, j});
      Terms row;
      came(row, s, j, -1.0);
      if (j + 1 < gap.end) {
        row.push_back({shares_.at({s, j + 1}).present, 1.0});
        program_.at_most(row, 0.0);
      } else if (!gap.tail) {
        program_.at_most(row, -1.0);
      }
      if (share.again) later_runs.push_back({*share.again, -1.0});
      add_origin(gap, j, share, later_runs);
      if (share.again) add_operands(s, j, *share.again);
    }
  }
  void add_origin(const IdleGap& gap, uint32_t j, const Share& share, const Terms& later_runs) {
    if (share.back && !step_.written_by(gap.storage, gap.version)) return;  // has a copy
    Terms row = later_runs;
    row.push_back({share.present, -1.0});
    if (share.back) {
      const Variable there = copy(gap.storage, gap.version, j);
      program_.at_most(Terms{{*share.back, 1.0}, {there, -1.0}}, 0.0);
      row.push_back({there, -1.0});
    }
    if (!gap.tail) program_.at_most(row, -1.0);
  }
  void add_operands(uint32_t s, uint32_t j, Variable again) {
    for (const StepTrace::Input& input : step_.trace_.ops[step_.maker_[s]].inputs) {
      const uint32_t x = input.storage;
      if (used_[j][x] || !shares_.contains({x, j})) continue;
      Terms row{{again, 1.0}};
      came(row, x, j, -1.0);
      program_.at_most(row, 0.0);
    }
  }
  void add_copies() {
    for (auto& [key, by_interval] : copies_) {
      const auto [s, version] = key;
      const uint32_t first = first_point_after(*step_.written_by(s, version));
      const uint32_t last = by_interval.rbegin()->first;
      std::optional<Variable> before;
      for (uint32_t j = first; j <= last; ++j) {
        const Variable there = copy(s, version, j);
        out_[j].push_back({there, copied(s)});  // copied in the interval that ends here
        if (before) {
          out_[j].push_back({*before, -copied(s)});
          program_.at_most(Terms{{*before, 1.0}, {there, -1.0}}, 0.0);
        }
        before = there;
      }
    }
  }
  void add_memory() {
    for (uint32_t j = 0; j < count_; ++j) {
      program_.at_most(memory_[j],
                       static_cast<double>(budget_ - step_.used_[points_[j]]) / kUnit);
    }
  }
  void add_links() {
    const double wait = step_.upload_wait();
    for (uint32_t i = 0; i <= count_; ++i) {
      const uint32_t begin = i > 0 ? points_[i - 1] : 0;
      const uint32_t end = i < count_ ? points_[i] : step_.calls();
      const double length = step_.begins_[end] - step_.begins_[begin] + (i == 0 ? wait : 0.0);
      add_link(out_[i], step_.out_per_ms_, i, length);
      add_link(in_[i], step_.in_per_ms_, i, length);
    }
  }
  void add_link(Terms bytes, double per_ms, uint32_t interval, double length) {
    if (bytes.empty()) return;
    const double rate = per_ms / kUnit;
    bytes.push_back({added_[interval], -rate});
    for (const LinearProgram::Term& run : runs_[interval]) {
      bytes.push_back({run.variable, -rate * run.coefficient});
    }
    program_.at_most(bytes, rate * length);
  }

  const Step& step_;
  const int64_t budget_;
  const std::vector<uint32_t>& points_;
  const uint32_t count_;
  LinearProgram program_;
  std::vector<IdleGap> gaps_;
  std::vector<Variable> added_;         // w, by interval
  std::vector<Terms> runs_, out_, in_;  // by interval
  std::vector<Terms> memory_;           // by call looked at
  std::map<Key, Share> shares_;
  std::map<Key, std::map<uint32_t, Variable>> copies_;  // by storage and version; by interval
  std::vector<std::vector<bool>> used_;
};

double Step::added(int64_t budget, const std::vector<uint32_t>& points,
                   const TimeBoundOptions& options) const {
  const Formulation formulation(*this, budget, points);
  Limits limits;
  limits.seconds = LinearProgram::kUnbounded;
  limits.nodes = options.iterations;
  limits.stop = options.stop;
  return best_bound(formulation.program(), limits).bound;
}

}  // namespace

std::optional<StepTimes> time_bound(const StepTrace& trace, const PlanLimits& limits,
                                    const TimeBoundOptions& options) {
  if (trace.ops.empty()) return StepTimes{};
  const Step step(trace, limits);
  const int64_t budget = limits.space.count();
  if (step.most_used() > budget) return std::nullopt;
  double added = 0;
  for (const uint32_t most : {options.few, options.many}) {
    const std::vector<uint32_t> points = step.fullest_calls(budget, most);
    if (!points.empty()) added = std::max(added, step.added(budget, points, options));
  }
  const double ample = step.total() + step.upload_wait();
  const auto nanos = [](double ms) { return Nanos(static_cast<int64_t>(ms * 1e6)); };
  // Rounding errors of the sums above are far below this share.
  return StepTimes{nanos(ample), std::max(nanos(ample), nanos((ample + added) * (1 - 1e-9)))};
}

}  // namespace tidemark::planner
