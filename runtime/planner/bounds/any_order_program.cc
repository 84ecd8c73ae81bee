#include "runtime/planner/bounds/any_order_program.h"

#include <algorithm>

namespace tidemark::planner {
namespace {

double in_units(double bytes) { return bytes / kBytesPerUnit; }

}  // namespace

AnyOrderProgram::AnyOrderProgram(const IdleGaps& step, const PlanLimits& limits,
                                 std::vector<uint32_t> looked_at, std::vector<Span> spans,
                                 double wait)
    : step_(step),
      out_per_ms_(bytes_per_ms(limits.out_bandwidth, limits)),
      in_per_ms_(bytes_per_ms(limits.in_bandwidth, limits)),
      looked_at_(std::move(looked_at)),
      spans_(std::move(spans)),
      moments_(static_cast<uint32_t>(looked_at_.size())),
      length_(intervals(), 0),
      added_(intervals()),
      out_(intervals()),
      in_(intervals()),
      memory_(moments_),
      always_(moments_, 0) {
  length_.front() = wait;
  find_used();
  add_calls();
  std::vector<uint32_t> tracked;
  for (uint32_t s = 0; s < step.trace().storages.size(); ++s) {
    if (is_tracked(s)) tracked.push_back(s);
  }
  for (const uint32_t s : tracked) add_variables(s);
  for (const uint32_t s : tracked) add_rows(s);
  add_memory(limits.space.count());
  add_links();
}

// Made in this step and gone by its end, or alive through all steps.
bool AnyOrderProgram::is_tracked(uint32_t s) const {
  const StepTrace::Storage& storage = step_.trace().storages[s];
  return storage.at_start == storage.at_end && step_.size(s) >= kSmallestIdle &&
         !step_.uses(s).empty();
}

bool AnyOrderProgram::may_copy(uint32_t s) const {
  return has_tier() && step_.trace().storages[s].may_offload;
}

bool AnyOrderProgram::may_run_again(uint32_t s) const {
  return step_.can_run_again({.storage = s});
}

// The first moment at which the storage exists in every order.
uint32_t AnyOrderProgram::exists_from(uint32_t s) const {
  if (step_.trace().storages[s].at_start) return 0;
  return spans_[step_.uses(s).front()].latest;
}

// When a step writes, for the last time, what lives through all steps.
std::optional<Span> AnyOrderProgram::last_write(uint32_t s) const {
  if (!step_.is_state(s) || step_.writes(s).empty()) return std::nullopt;
  return spans_[step_.writes(s).back()];
}

void AnyOrderProgram::find_used() {
  used_.assign(moments_, std::vector<bool>(step_.trace().storages.size(), false));
  for (uint32_t j = 0; j < moments_; ++j) {
    const StepTrace::Op& op = step_.trace().ops[looked_at_[j]];
    for (const StepTrace::Input& input : op.inputs) used_[j][input.storage] = true;
    for (const uint32_t output : op.outputs) used_[j][output] = true;
  }
}

// Bytes that the operator uses. It may run in place over an input that no later one needs.
int64_t AnyOrderProgram::needed(uint32_t j) const {
  const StepTrace::Op& op = step_.trace().ops[looked_at_[j]];
  int64_t bytes = op.workspace.count();
  for (uint32_t s = 0; s < used_[j].size(); ++s) bytes += used_[j][s] ? step_.size(s) : 0;
  const auto may_die = [&](uint32_t s) {
    const auto& its = step_.uses(s);
    return std::none_of(its.begin(), its.end(), [&](uint32_t u) {
      return u != looked_at_[j] && spans_[u].earliest > j;
    });
  };
  const auto& over = op.may_overwrite;
  const bool in_place = std::any_of(over.begin(), over.end(), may_die);
  return in_place ? bytes - step_.size(op.outputs.front()) : bytes;
}

// w, t
void AnyOrderProgram::add_calls() {
  std::map<std::pair<uint32_t, uint32_t>, double> floating;
  for (uint32_t k = 0; k < step_.calls(); ++k) {
    const auto [earliest, latest] = spans_[k];
    const double takes = step_.begins(k + 1) - step_.begins(k);
    if (earliest == latest) {
      length_[earliest] += takes;
    } else if (takes > 0) {
      floating[{earliest, latest}] += takes;
    }
  }
  for (uint32_t i = 0; i < intervals(); ++i) {
    added_[i].push_back({program_.variable(LinearProgram::kUnbounded, 1.0), 1.0});
  }
  for (const auto& [span, takes] : floating) {
    Terms all;
    for (uint32_t i = span.first; i <= span.second; ++i) {
      const Variable share = program_.variable(1.0, 0.0);
      added_[i].push_back({share, takes});
      all.push_back({share, 1.0});
    }
    program_.at_most(all, 1.0);
  }
}

void AnyOrderProgram::add_variables(uint32_t s) {
  const StepTrace::Storage& storage = step_.trace().storages[s];
  const uint32_t from = exists_from(s);
  const Storage::Variables none(intervals());
  Storage its{none, none, none, none, none, none};
  its.copied.resize(none.size() * 2);
  if (!may_copy(s) && !may_run_again(s)) {
    for (const Return& there : returns(s)) always_[there.moment] += step_.size(s);
    return;
  }
  for (uint32_t j = from; j < moments_; ++j) {
    its.present[j] = program_.variable(1.0, 0.0);
    if (!uses(j, s)) {
      memory_[j].push_back({*its.present[j], in_units(static_cast<double>(step_.size(s)))});
    }
  }
  for (uint32_t i = storage.at_start ? 0 : from + 1; i < intervals(); ++i) {
    if (may_copy(s)) {
      its.back[i] = program_.variable(1.0, 0.0);
      in_[i].push_back({*its.back[i], in_units(step_.copied_bytes(s))});
    }
    if (may_run_again(s)) {
      const double price = step_.price(s);
      its.again[i] = program_.variable(1.0, price);
      its.first[i] = program_.variable(1.0, 0.0);
      if (price > 0) added_[i].push_back({*its.again[i], price});
    }
  }
  if (may_copy(s)) add_copied(s, its);
  its_.emplace(s, std::move(its));
}

// U, E. What is uploaded, and what no step writes, has a copy from the beginning.
void AnyOrderProgram::add_copied(uint32_t s, Storage& its) {
  uint32_t begin = 0, end = 0;
  if (const auto write = last_write(s)) {
    begin = write->earliest;
    end = intervals() + write->latest;
  } else if (!step_.trace().storages[s].at_start && step_.written_by(s, 0)) {
    begin = spans_[step_.uses(s).front()].earliest;
    end = moments_;
    for (uint32_t j = exists_from(s); may_run_again(s) && j < moments_; ++j) {
      its.exists[j] = program_.variable(1.0, 0.0);
    }
  }
  for (uint32_t j = begin; j < end; ++j) its.copied[j] = program_.variable(1.0, 0.0);
}

// The last interval in which something may come back that the operator uses.
uint32_t AnyOrderProgram::back_for(uint32_t op) const {
  const bool is_looked_at =
      std::find(looked_at_.begin(), looked_at_.end(), op) != looked_at_.end();
  return spans_[op].latest - (is_looked_at ? 1 : 0);
}

// The moments at which the storage is surely needed and not in use, each with the last interval
// in which it may come back if it is away.
std::vector<AnyOrderProgram::Return> AnyOrderProgram::returns(uint32_t s) const {
  const bool lives_on = step_.trace().storages[s].at_start;
  const uint32_t none = 2 * intervals();
  std::vector<Return> result;
  for (uint32_t j = exists_from(s); j < moments_; ++j) {
    if (uses(j, s)) continue;
    uint32_t latest = none;
    for (const uint32_t u : step_.uses(s)) {
      if (spans_[u].earliest > j) latest = std::min(latest, back_for(u));
    }
    if (latest == none && lives_on) {
      for (const uint32_t u : step_.uses(s))
        latest = std::min(latest, intervals() + back_for(u));
    }
    if (latest < none) result.push_back({j, latest});
  }
  return result;
}

// What of the storage is there when the interval starts, or comes in it; with this factor.
void AnyOrderProgram::came(Terms& terms, uint32_t s, uint32_t i, double factor) const {
  const Storage& its = its_.at(s);
  const uint32_t moment = i > 0 ? i - 1 : moments_ - 1;
  if (its.present[moment]) terms.push_back({*its.present[moment], factor});
  if (i == 0 && its.back.back()) terms.push_back({*its.back.back(), factor});
  if (its.again[i]) terms.push_back({*its.again[i], factor});
  if (its.back[i]) terms.push_back({*its.back[i], factor});
}

void AnyOrderProgram::add_rows(uint32_t s) {
  if (!its_.contains(s)) return;
  const Storage& its = its_.at(s);
  const uint32_t from = exists_from(s);
  const bool lives_on = step_.trace().storages[s].at_start;
  for (uint32_t j = lives_on ? 0 : from + 1; j < moments_; ++j) {
    Terms row{{*its.present[j], 1.0}};
    came(row, s, j, -1.0);
    program_.at_most(row, 0.0);
  }
  const std::vector<Return> all = returns(s);
  for (size_t n = 0; n < all.size(); ++n) {
    const auto [j, latest] = all[n];
    Terms row{{*its.present[j], -1.0}}, origin;
    for (uint32_t i = j + 1; i <= latest && i <= j + intervals(); ++i) {
      if (its.again[i % intervals()]) origin.push_back({*its.again[i % intervals()], -1.0});
      if (its.back[i % intervals()]) row.push_back({*its.back[i % intervals()], -1.0});
    }
    row.insert(row.end(), origin.begin(), origin.end());
    const bool follows = n + 1 < all.size() && all[n + 1].moment == j + 1 &&
                         all[n + 1].latest == latest;  // then that row and P's give this one
    if (!follows) program_.at_most(row, -1.0);
    // What is away of the state is of this step's version or of the last one's.
    const auto before = its.copied[intervals() + j];
    if (!its.copied[j] && !before) continue;  // there is a copy in any case, or no tier
    if (its.exists[j]) {
      origin.push_back({*its.exists[j], -1.0});
    } else {
      origin.push_back({*its.present[j], -1.0});
      if (its.copied[j]) origin.push_back({*its.copied[j], -1.0});
      if (before) origin.push_back({*before, -1.0});
    }
    program_.at_most(origin, -1.0);
  }
  add_existence(s);
  add_operands(s);
  if (may_run_again(s)) add_first_run(s, all);
  add_copies(s);
}

// E
void AnyOrderProgram::add_existence(uint32_t s) {
  const Storage& its = its_.at(s);
  for (uint32_t j = 0; j < moments_; ++j) {
    if (!its.exists[j]) continue;
    const Term least{*its.exists[j], -1.0};
    program_.at_most(Terms{{*its.copied[j], 1.0}, least}, 0.0);
    program_.at_most(Terms{{*its.present[j], 1.0}, {*its.back[j + 1], 1.0}, least}, 0.0);
    program_.at_most(
        Terms{{*its.exists[j], 1.0}, {*its.present[j], -1.0}, {*its.copied[j], -1.0}}, 0.0);
    if (j + 1 == moments_) continue;
    program_.at_most(Terms{{*its.exists[j + 1], 1.0}, least, {*its.again[j + 1], -1.0}}, 0.0);
  }
}

void AnyOrderProgram::add_operands(uint32_t s) {
  const Storage& its = its_.at(s);
  for (uint32_t i = 1; i < intervals(); ++i) {
    if (!its.again[i]) continue;
    for (const StepTrace::Input& input : step_.maker(s).inputs) {
      const auto x = its_.find(input.storage);
      if (x == its_.end() || !x->second.present[i - 1]) continue;
      Terms row{{*its.again[i], 1.0}};
      came(row, input.storage, i, -1.0);
      program_.at_most(row, 0.0);
      if (!x->second.exists[i - 1]) continue;
      program_.at_most(Terms{{*its.again[i], 1.0},
                             {*x->second.exists[i - 1], -1.0},
                             {*x->second.again[i], -1.0}},
                       0.0);
    }
  }
}

// f
void AnyOrderProgram::add_first_run(uint32_t s, const std::vector<Return>& all) {
  const Storage& its = its_.at(s);
  Terms once, none;
  for (uint32_t i = 0; i < intervals(); ++i) {
    if (!its.first[i]) continue;
    once.push_back({*its.first[i], 1.0});
    none.push_back({*its.first[i], -1.0});
    program_.at_most(Terms{{*its.first[i], 1.0}, {*its.again[i], -1.0}}, 0.0);
  }
  program_.at_most(once, 1.0);
  for (const Return& there : all) {
    Terms row = none;
    const auto exists = its.exists[there.moment];
    row.push_back({exists ? *exists : *its.present[there.moment], -1.0});
    program_.at_most(row, -1.0);
  }
  for (const StepTrace::Input& input : step_.maker(s).inputs) {
    const auto found = its_.find(input.storage);
    if (found != its_.end()) add_way_to_run(its, found->second);
  }
}

// The first run needs all of its input x. What does not exist of that runs again, too.
void AnyOrderProgram::add_way_to_run(const Storage& its, const Storage& x) {
  Terms runs, present, exists;  // from moment i - 1 on
  uint32_t i = intervals();
  const auto with = [&](Terms row, Variable there) {
    row.push_back({there, -1.0});
    program_.at_most(row, 0.0);
  };
  while (--i > 0 && its.first[i] && x.present[i - 1]) {
    for (Terms* row : {&runs, &present, &exists}) row->push_back({*its.first[i], 1.0});
    if (x.again[i]) {
      present.push_back({*x.again[i], -1.0});
      exists.push_back({*x.again[i], -1.0});
    }
    if (x.back[i]) present.push_back({*x.back[i], -1.0});
    with(present, *x.present[i - 1]);
    if (x.exists[i - 1]) with(exists, *x.exists[i - 1]);
  }
  if (runs.empty() || !x.again[i + 1]) return;
  for (const auto& first : x.first) {
    if (first) runs.push_back({*first, -1.0});
  }
  with(runs, x.exists[i] ? *x.exists[i] : *x.present[i]);
}

void AnyOrderProgram::add_copies(uint32_t s) {
  const Storage& its = its_.at(s);
  const double copied = in_units(step_.copied_bytes(s));
  std::optional<Variable> before;
  for (uint32_t j = 0; j < its.copied.size(); ++j) {
    if (!its.copied[j]) continue;
    Terms& out = out_[j % intervals()];
    out.push_back({*its.copied[j], copied});
    if (before) {
      out.push_back({*before, -copied});
      program_.at_most(Terms{{*before, 1.0}, {*its.copied[j], -1.0}}, 0.0);
    }
    if (!last_write(s) && its.back[j + 1]) {
      program_.at_most(Terms{{*its.back[j + 1], 1.0}, {*its.copied[j], -1.0}}, 0.0);
    }
    before = its.copied[j];
  }
}

void AnyOrderProgram::add_memory(int64_t budget) {
  for (uint32_t j = 0; j < moments_; ++j) {
    const int64_t left = budget - needed(j) - always_[j];
    program_.at_most(memory_[j], in_units(static_cast<double>(left)));
  }
}

void AnyOrderProgram::add_links() {
  const auto add = [&](Terms bytes, double per_ms, uint32_t i) {
    if (bytes.empty()) return;
    const double rate = in_units(per_ms);
    for (const auto& [variable, takes] : added_[i]) bytes.push_back({variable, -rate * takes});
    program_.at_most(bytes, rate * length_[i]);
  };
  for (uint32_t i = 0; i < intervals(); ++i) {
    add(out_[i], out_per_ms_, i);
    add(in_[i], in_per_ms_, i);
  }
}

}  // namespace tidemark::planner
