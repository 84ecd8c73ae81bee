#include "runtime/planner/bounds/idle_gaps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/schedule/step_table.h"

namespace tidemark::planner {
namespace {

constexpr int64_t kMaxPadding = 511;  // of a storage's size, because of alignment

double in_milliseconds(Nanos time) { return static_cast<double>(time.count()) * 1e-6; }

}  // namespace

IdleGaps::IdleGaps(const StepTrace& trace)
    : trace_(trace),
      uses_(trace.storages.size()),
      writes_(trace.storages.size()),
      maker_(trace.storages.size(), kNone),
      uploaded_(trace.storages.size(), false),
      used_(trace.ops.size(), 0),
      begins_{0.0} {
  for (const StepTrace::Op& op : trace.ops) {
    const bool runs = op.kind == StepTrace::Kind::kCall;
    begins_.push_back(begins_.back() + (runs ? in_milliseconds(op.cost) : 0));
  }
  for (uint32_t k = 0; k < trace.ops.size(); ++k) add_op(k);
  live_ = used_;
  const StepTable table(trace);
  for (const StepTable::Item& item : table.items) {
    lives_through_.push_back(item.lives_through());
  }
  for (uint32_t s = 0; s < uses_.size(); ++s) {
    if (size(s) < kSmallestIdle || uses_[s].empty()) continue;
    add_gaps(s);
    add_gaps_around(s);
  }
  add_tails();
}

void IdleGaps::add_op(uint32_t k) {
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
bool IdleGaps::runs_in_place(uint32_t k) const {
  const std::vector<uint32_t>& inputs = trace_.ops[k].may_overwrite;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](uint32_t s) { return dies_in_place(trace_, k, s); });
}

void IdleGaps::add_gaps(uint32_t s) {
  for (size_t i = 0; i + 1 < uses_[s].size(); ++i) {
    const uint32_t a = uses_[s][i], b = uses_[s][i + 1];
    // An upload may still be waiting for its bytes when compute goes on.
    if (b == a + 1 || (uploaded_[s] && i == 0)) continue;
    IdleGap gap{.storage = s, .first = a, .last = b, .version = version_after(s, a)};
    if (gap.version == 0 && lives_through_[s] && !writes_[s].empty()) {
      gap.version = last_version(s);
      gap.from_before = true;
    }
    gaps_.push_back(gap);
    for (uint32_t k = a + 1; k < b; ++k) live_[k] += size(s);
  }
}

// Before the first use of what exists before the step, after the last of what stays.
void IdleGaps::add_gaps_around(uint32_t s) {
  const StepTrace::Storage& storage = trace_.storages[s];
  if (!storage.at_start && !storage.at_end) return;
  auto kind = IdleGap::Kind::kAfter;
  if (storage.at_start) kind = storage.at_end ? IdleGap::Kind::kOver : IdleGap::Kind::kBefore;
  if (kind == IdleGap::Kind::kOver && !lives_through_[s]) return;
  const IdleGap gap{.storage = s,
                    .kind = kind,
                    .first = uses_[s].back(),
                    .last = uses_[s].front(),
                    .version = kind == IdleGap::Kind::kBefore ? 0 : last_version(s)};
  if (can_run_again(gap)) return;
  gaps_.push_back(gap);
  if (kind != IdleGap::Kind::kAfter) {
    for (uint32_t k = 0; k < uses_[s].front(); ++k) live_[k] += size(s);
  }
  if (kind != IdleGap::Kind::kBefore) {
    for (uint32_t k = uses_[s].back() + 1; k < calls(); ++k) live_[k] += size(s);
  }
}

// What is wanted after its last use, only to compute something again: what is in a gap, or
// again such a source.
void IdleGaps::add_tails() {
  std::map<uint32_t, IdleGap> found;                  // by storage
  std::vector<std::pair<uint32_t, uint32_t>> wanted;  // a storage, and before which operator
  for (const IdleGap& gap : gaps_) {
    if (can_run_again(gap)) wanted.emplace_back(gap.storage, gap.last);
  }
  while (!wanted.empty()) {
    const auto [storage, before] = wanted.back();
    wanted.pop_back();
    for (const StepTrace::Input& input : maker(storage).inputs) {
      const uint32_t x = input.storage;
      const uint32_t last = uses_[x].back();
      if (size(x) < kSmallestIdle || trace_.storages[x].at_start || trace_.storages[x].at_end)
        continue;
      const IdleGap tail{.storage = x,
                         .kind = IdleGap::Kind::kTail,
                         .first = last,
                         .last = calls(),
                         .version = last_version(x)};
      const bool is_new = last + 1 < before && found.try_emplace(x, tail).second;
      if (is_new && can_run_again(tail)) wanted.emplace_back(x, calls());
    }
  }
  for (const auto& [storage, tail] : found) gaps_.push_back(tail);
}

double IdleGaps::copied_bytes(uint32_t s) const {
  return static_cast<double>(std::max<int64_t>(size(s) - kMaxPadding, 0));
}

int64_t IdleGaps::most_used() const { return *std::max_element(used_.begin(), used_.end()); }

std::vector<uint32_t> IdleGaps::fullest(int64_t budget, uint32_t most) const {
  std::vector<uint32_t> over;
  for (uint32_t k = 0; k < calls(); ++k) {
    if (is_call(k) && live_[k] > budget) over.push_back(k);
  }
  std::vector<uint32_t> chosen = fullest_of_stretches(over, live_, most);
  if (!chosen.empty()) add_between(chosen, total() / most);
  return chosen;
}

std::vector<uint32_t> fullest_of_stretches(const std::vector<uint32_t>& operators,
                                           const std::vector<int64_t>& live, uint32_t most) {
  std::vector<uint32_t> chosen;
  const size_t stretches = std::min<size_t>(most, operators.size());
  for (size_t i = 0; i < stretches; ++i) {
    const auto from = [&](size_t stretch) {
      return operators.begin() + static_cast<int64_t>(stretch * operators.size() / stretches);
    };
    chosen.push_back(*std::max_element(
        from(i), from(i + 1), [&](uint32_t a, uint32_t b) { return live[a] < live[b]; }));
  }
  return chosen;
}

// Adds operators, so that about `apart` milliseconds lie between two at most: what a copy may
// do in an interval counts from its beginning.
void IdleGaps::add_between(std::vector<uint32_t>& chosen, double apart) const {
  std::vector<uint32_t> more;
  double last = 0;
  for (uint32_t k = 0, next = 0; k < calls(); ++k) {
    if (next < chosen.size() && chosen[next] == k) {
      last = begins_[k];
      ++next;
    } else if (is_call(k) && begins_[k + 1] - last > apart &&
               (next == chosen.size() || begins_[chosen[next]] - begins_[k] > apart / 2)) {
      more.push_back(k);
      last = begins_[k];
    }
  }
  // What the updates write, often by the last operators, cannot be copied before them.
  uint32_t update = calls();
  for (uint32_t s = 0; s < writes_.size(); ++s) {
    if (is_state(s) && !writes_[s].empty()) update = std::min(update, writes_[s].front());
  }
  if (update < calls()) more.push_back(update);
  chosen.insert(chosen.end(), more.begin(), more.end());
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
}

double IdleGaps::upload_wait(double bytes_per_ms, uint32_t last) const {
  double done = 0, wait = 0;
  for (const StepTrace::Op& op : trace_.ops) {
    if (op.kind == StepTrace::Kind::kCall) break;
    if (op.kind != StepTrace::Kind::kUpload) continue;
    const uint32_t s = op.outputs.front();
    done += copied_bytes(s) / bytes_per_ms;
    const auto reads = [&](uint32_t k) {
      const auto& inputs = trace_.ops[k].inputs;
      return std::any_of(inputs.begin(), inputs.end(),
                         [s](const StepTrace::Input& input) { return input.storage == s; });
    };
    const auto first = std::find_if(uses_[s].begin(), uses_[s].end(), reads);
    if (first == uses_[s].end() || *first > last) continue;
    wait = std::max(wait, done - begins_[*first]);
  }
  return wait;
}

// The number of in-place writes up to an operator.
uint32_t IdleGaps::version_after(uint32_t s, uint32_t k) const {
  return static_cast<uint32_t>(std::upper_bound(writes_[s].begin(), writes_[s].end(), k) -
                               writes_[s].begin());
}

std::optional<uint32_t> IdleGaps::written_by(uint32_t s, uint32_t version) const {
  if (version > 0) return writes_[s][version - 1];
  if (trace_.storages[s].at_start || uploaded_[s]) return std::nullopt;
  return uses_[s].front();
}

bool IdleGaps::can_run_again(const IdleGap& gap) const {
  const StepTrace::Storage& storage = trace_.storages[gap.storage];
  return maker_[gap.storage] != kNone && gap.version == 0 && !storage.at_start &&
         storage.may_evict;
}

double IdleGaps::price(uint32_t s) const {
  const auto& outputs = maker(s).outputs;
  const uint32_t payer =
      *std::max_element(outputs.begin(), outputs.end(),
                        [this](uint32_t a, uint32_t b) { return size(a) < size(b); });
  return payer == s ? in_milliseconds(maker(s).cost) : 0.0;
}

}  // namespace tidemark::planner
