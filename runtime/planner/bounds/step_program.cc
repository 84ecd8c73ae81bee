#include "runtime/planner/bounds/step_program.h"

#include <algorithm>

namespace tidemark::planner {
StepProgram::StepProgram(const IdleGaps& step, const PlanLimits& limits,
                         std::vector<uint32_t> looked_at)
    : step_(step),
      out_per_ms_(bytes_per_ms(limits.out_bandwidth, limits)),
      in_per_ms_(bytes_per_ms(limits.in_bandwidth, limits)),
      looked_at_(std::move(looked_at)),
      wait_(step.upload_wait(limits.in_bandwidth / 1e3, looked_at_.front())),
      count_(static_cast<uint32_t>(looked_at_.size())) {
  for (uint32_t j = 0; j <= count_; ++j) {
    added_.push_back(program_.variable(LinearProgram::kUnbounded, 1.0));
  }
  runs_.resize(count_ + 1);
  out_.resize(count_ + 1);
  in_.resize(count_ + 1);
  memory_.resize(count_);
  for (const IdleGap& gap : step.gaps()) {
    const Moments in = moments_in(gap);
    if (in.begin < in.end) gaps_.emplace_back(gap, in);
  }
  for (const auto& [gap, in] : gaps_) add_variables(gap, in);
  find_used();
  for (const auto& [gap, in] : gaps_) add_rows(gap, in);
  add_copies();
  add_memory(limits.space.count());
  add_links();
}

// The first operator looked at after this one; from this one on.
uint32_t StepProgram::first_after(uint32_t op) const {
  return static_cast<uint32_t>(std::upper_bound(looked_at_.begin(), looked_at_.end(), op) -
                               looked_at_.begin());
}
uint32_t StepProgram::first_from(uint32_t op) const {
  return static_cast<uint32_t>(std::lower_bound(looked_at_.begin(), looked_at_.end(), op) -
                               looked_at_.begin());
}

StepProgram::Moments StepProgram::moments_in(const IdleGap& gap) const {
  const uint32_t after = first_after(gap.first), before = first_from(gap.last);
  const uint32_t next_step = gap.from_before ? moments() : 0;
  switch (gap.kind) {
    case IdleGap::Kind::kBetween:
    case IdleGap::Kind::kTail: return {next_step + after, next_step + before};
    case IdleGap::Kind::kOver: return {after, moments() + before};
    case IdleGap::Kind::kBefore: return {count_, moments() + before};
    case IdleGap::Kind::kAfter: return {after, moments()};
  }
  return {};
}

double StepProgram::in_units(uint32_t s) const {
  return static_cast<double>(step_.size(s)) / kBytesPerUnit;
}
double StepProgram::copied(uint32_t s) const { return step_.copied_bytes(s) / kBytesPerUnit; }

void StepProgram::add_variables(const IdleGap& gap, const Moments& in) {
  const uint32_t s = gap.storage;
  for (uint32_t j = in.begin; j < in.end; ++j) {
    Share share;
    share.gap_begin = in.begin;
    share.gap_end = in.end;
    share.present = program_.variable(1.0, 0.0);
    if (in_step(j) < count_) memory_[in_step(j)].push_back({share.present, in_units(s)});
    if (in_per_ms_ > 0 && step_.trace().storages[s].may_offload) {
      share.back = program_.variable(1.0, 0.0);
      in_[interval_from(j)].push_back({*share.back, copied(s)});
      if (step_.written_by(s, gap.version)) {
        copy(s, gap.version, j);
        share.exists = program_.variable(1.0, 0.0);
      }
    } else {
      share.exists = share.present;
    }
    if (step_.can_run_again(gap)) {
      const double price = step_.price(s);
      share.again = program_.variable(1.0, price);
      if (price > 0) runs_[interval_from(j)].push_back({*share.again, price});
      share.first = program_.variable(1.0, 0.0);
    }
    shares_.emplace(Key(s, in_step(j)), share);
  }
}

// U
StepProgram::Variable StepProgram::copy(uint32_t s, uint32_t version, uint32_t j) {
  auto& by_moment = copies_[{s, version}];
  const auto found = by_moment.find(j);
  if (found != by_moment.end()) return found->second;
  const Variable v = program_.variable(1.0, 0.0);
  by_moment.emplace(j, v);
  return v;
}

// Storages used from each operator looked at to the next, both included.
void StepProgram::find_used() {
  used_.assign(count_, std::vector<bool>(step_.trace().storages.size(), false));
  for (uint32_t s = 0; s < step_.trace().storages.size(); ++s) {
    for (const uint32_t k : step_.uses(s)) {
      const uint32_t after = first_after(k);
      if (after > 0) used_[after - 1][s] = true;
      if (after > 1 && looked_at_[after - 1] == k) used_[after - 2][s] = true;
    }
  }
}

// What of the storage is there at moment j, or comes in the interval from there; with this
// factor.
void StepProgram::came(Terms& terms, uint32_t s, uint32_t j, double factor) const {
  const Share& its = share(s, j);
  terms.push_back({its.present, factor});
  if (its.again) terms.push_back({*its.again, factor});
  if (its.back) terms.push_back({*its.back, factor});
}

void StepProgram::add_rows(const IdleGap& gap, const Moments& in) {
  const uint32_t s = gap.storage;
  Terms later_runs;
  for (uint32_t j = in.end; j-- > in.begin;) {
    const Share& here = share(s, j);
    Terms row;
    came(row, s, j, -1.0);
    if (j + 1 < in.end) {
      row.push_back({share(s, j + 1).present, 1.0});
      program_.at_most(row, 0.0);
    } else if (gap.ends_in_use()) {
      program_.at_most(row, -1.0);
    }
    if (here.again) later_runs.push_back({*here.again, -1.0});
    if (here.exists) add_existence(gap, in, j, later_runs);
    if (here.again) add_operands(s, in_step(j), *here.again);
  }
  if (step_.can_run_again(gap)) add_first_run(gap, in);
}

// E
void StepProgram::add_existence(const IdleGap& gap, const Moments& in, uint32_t j,
                                Terms later_runs) {
  const Share& here = share(gap.storage, j);
  if (here.back) {
    const Variable copied = copy(gap.storage, gap.version, j);
    const Term least{*here.exists, -1.0};
    program_.at_most(Terms{{*here.back, 1.0}, {copied, -1.0}}, 0.0);
    program_.at_most(Terms{{copied, 1.0}, least}, 0.0);
    program_.at_most(Terms{{here.present, 1.0}, {*here.back, 1.0}, least}, 0.0);
    program_.at_most(Terms{{*here.exists, 1.0}, {here.present, -1.0}, {copied, -1.0}}, 0.0);
    if (j + 1 < in.end) {
      Terms row{{*share(gap.storage, j + 1).exists, 1.0}, least};
      if (here.again) row.push_back({*here.again, -1.0});
      program_.at_most(row, 0.0);
    }
  }
  if (!gap.must_exist()) return;
  later_runs.push_back({*here.exists, -1.0});
  program_.at_most(later_runs, -1.0);
}

// f
void StepProgram::add_first_run(const IdleGap& gap, const Moments& in) {
  const uint32_t s = gap.storage;
  Terms once, runs;
  for (uint32_t j = in.begin; j < in.end; ++j) {
    const Share& here = share(s, j);
    once.push_back({*here.first, 1.0});
    runs.push_back({*here.first, -1.0});
    program_.at_most(Terms{{*here.first, 1.0}, {*here.again, -1.0}}, 0.0);
  }
  program_.at_most(once, 1.0);
  for (uint32_t j = in.begin; gap.must_exist() && j < in.end; ++j) {
    if (!share(s, j).exists) continue;
    Terms row = runs;
    row.push_back({*share(s, j).exists, -1.0});
    program_.at_most(row, -1.0);
  }
  for (const StepTrace::Input& input : step_.maker(s).inputs)
    add_way_to_run(gap, in, input.storage);
}

// The first run needs all of its input x, as long as no call uses x.
void StepProgram::add_way_to_run(const IdleGap& gap, const Moments& in, uint32_t x) {
  Terms runs, present, exists;  // from moment j on
  const Share* its_first = nullptr;
  for (uint32_t j = in.end; j-- > in.begin;) {
    if (used_[in_step(j)][x] || !shares_.contains({x, in_step(j)})) break;
    const Share& its = share(x, j);
    its_first = &share(x, its.gap_begin);
    const Term run{*share(gap.storage, j).first, 1.0};
    for (Terms* row : {&runs, &present, &exists}) row->push_back(run);
    if (its.again) {
      present.push_back({*its.again, -1.0});
      exists.push_back({*its.again, -1.0});
    }
    if (its.back) present.push_back({*its.back, -1.0});
    const auto with = [&](Terms row, Variable there) {
      row.push_back({there, -1.0});
      program_.at_most(row, 0.0);
    };
    with(present, its.present);
    if (its.exists && its.back) with(exists, *its.exists);
  }
  if (!its_first || !its_first->exists || !its_first->first) return;
  runs.push_back({*its_first->exists, -1.0});
  for (uint32_t j = its_first->gap_begin; j < its_first->gap_end; ++j) {
    runs.push_back({*share(x, j).first, -1.0});
  }
  program_.at_most(runs, 0.0);
}

void StepProgram::add_operands(uint32_t s, uint32_t j, Variable again) {
  for (const StepTrace::Input& input : step_.maker(s).inputs) {
    const uint32_t x = input.storage;
    if (used_[j][x] || !shares_.contains({x, j})) continue;
    Terms row{{again, 1.0}};
    came(row, x, j, -1.0);
    program_.at_most(row, 0.0);
    const Share& its = share(x, j);
    if (!its.exists || !its.back) continue;
    Terms exists{{again, 1.0}, {*its.exists, -1.0}};
    if (its.again) exists.push_back({*its.again, -1.0});
    program_.at_most(exists, 0.0);
  }
}

void StepProgram::add_copies() {
  for (auto& [key, by_moment] : copies_) {
    const auto [s, version] = key;
    const uint32_t first = first_after(*step_.written_by(s, version));
    const uint32_t last = by_moment.rbegin()->first;
    std::optional<Variable> before;
    for (uint32_t j = first; j <= last; ++j) {
      const Variable there = copy(s, version, j);
      Terms& out = out_[in_step(j)];  // copied in the interval that ends here
      out.push_back({there, copied(s)});
      if (before) {
        out.push_back({*before, -copied(s)});
        program_.at_most(Terms{{*before, 1.0}, {there, -1.0}}, 0.0);
      }
      before = there;
    }
  }
}

void StepProgram::add_memory(int64_t budget) {
  for (uint32_t j = 0; j < count_; ++j) {
    program_.at_most(memory_[j],
                     static_cast<double>(budget - step_.used(looked_at_[j])) / kBytesPerUnit);
  }
}

void StepProgram::add_links() {
  for (uint32_t i = 0; i <= count_; ++i) {
    const uint32_t begin = i > 0 ? looked_at_[i - 1] : 0;
    const uint32_t end = i < count_ ? looked_at_[i] : step_.calls();
    const double length = step_.begins(end) - step_.begins(begin) + (i == 0 ? wait_ : 0.0);
    add_link(out_[i], out_per_ms_, i, length);
    add_link(in_[i], in_per_ms_, i, length);
  }
}

void StepProgram::add_link(Terms bytes, double per_ms, uint32_t interval, double length) {
  if (bytes.empty()) return;
  const double rate = per_ms / kBytesPerUnit;
  bytes.push_back({added_[interval], -rate});
  for (const LinearProgram::Term& run : runs_[interval]) {
    bytes.push_back({run.variable, -rate * run.coefficient});
  }
  program_.at_most(bytes, rate * length);
}

}  // namespace tidemark::planner
