#include "runtime/planner/releases/step_simulator.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tidemark::planner {
namespace {

// A copy costs this share of its time even where compute hides it, as hiding is not certain.
constexpr double kPriceOfCopies = 0.01;

// Moments that are saved of a plan.
constexpr uint32_t kMoments = 32;

// Whether all storages that live between steps, beside what some call needs, exceed the space.
bool cannot_stay_between(const StepTable& step, Bytes space) {
  Bytes at_start{0}, at_end{0}, most{0};
  for (const StepTable::Item& item : step.items) {
    if (item.existed_before()) at_start += item.bytes;
    if (item.at_end) at_end += item.bytes;
  }
  for (uint32_t call = 0; call < step.calls.size(); ++call) {
    Bytes needed = step.calls[call].workspace;
    for (const uint32_t input : step.inputs(call)) needed += step.items[input].bytes;
    for (const uint32_t output : step.outputs(call)) needed += step.items[output].bytes;
    const uint32_t overwritten = step.calls[call].overwrites;
    if (overwritten != StepTable::kNone) needed -= step.items[overwritten].bytes;
    most = std::max(most, needed);
  }
  return std::max(at_start, at_end) + most > space;
}

bool begins_earlier(const PlannedRelease& a, const PlannedRelease& b) {
  return std::tie(a.from, a.item, a.to) < std::tie(b.from, b.item, b.to);
}

// The call after which the plans first do something different; 0 also if they begin
// differently. REQUIRES: both are ordered by begins_earlier().
uint32_t parting_of(const std::vector<PlannedRelease>& a, const std::vector<PlannedRelease>& b,
                    uint32_t calls) {
  uint32_t after = calls;
  const auto one_alone = [&](const PlannedRelease& it) {
    after = std::min(after, it.wraps() ? 0 : it.from);
  };
  auto i = a.begin(), k = b.begin();
  while (i != a.end() || k != b.end()) {
    if (k == b.end() || (i != a.end() && begins_earlier(*i, *k))) {
      one_alone(*i++);
    } else if (i == a.end() || begins_earlier(*k, *i)) {
      one_alone(*k++);
    } else {
      if (i->action != k->action || i->leaves_before_end != k->leaves_before_end) one_alone(*i);
      if (i->reload_at != k->reload_at) after = std::min({after, i->reload_at, k->reload_at});
      ++i;
      ++k;
    }
  }
  return after;
}

}  // namespace

StepSimulator::StepSimulator(const StepTrace& trace, const StepTable& step,
                             const PlanLimits& limits)
    : trace_(trace),
      step_(step),
      calls_(static_cast<uint32_t>(step.calls.size())),
      between_moments_(calls_ / kMoments + 1),
      space_(limits.space.count()),
      idle_(limits),
      link_price_(1e9 / limits.out_bandwidth + 1e9 / limits.in_bandwidth),
      all_away_between_(cannot_stay_between(step, limits.space)),
      shortfall_price_(link_price_),
      writes_(step.calls.size()),
      next_uses_(step.calls.size()),
      seen_(step.calls.size()),
      link_(idle_) {
  for (uint32_t i = 0; i < step.items.size(); ++i) {
    const StepTable::Item& item = step.items[i];
    bytes_.push_back(item.bytes.count());
    out_time_.push_back(limits.out_time(item.bytes));
    in_time_.push_back(limits.in_time(item.bytes));
    State& state = before_step_.emplace_back();
    if (!item.existed_before()) continue;
    existing_.push_back(i);
    state.take_block();
    state.next = item.uses.empty() ? calls_ : item.uses.front();
  }
  std::vector<bool> read(step.items.size());  // by a call that may have to run again
  for (uint32_t call = 0; call < calls_; ++call) {
    for (const uint32_t written : step.written(call)) {
      if (read[written]) writes_[call].push_back(written);
    }
    if (step.written(call).empty()) {
      for (const uint32_t input : step.inputs(call)) read[input] = true;
    }
    std::vector<uint32_t>& next = next_uses_[call];
    for (const uint32_t input : step.inputs(call)) next.push_back(next_use(input, call));
    for (const uint32_t output : step.outputs(call)) {
      next.push_back(next_use(output, call));
    }
  }
}

// The item's next use after `call`; if it lives on, possibly in the next step.
uint32_t StepSimulator::next_use(uint32_t item, uint32_t call) const {
  const std::vector<uint32_t>& uses = step_.items[item].uses;
  const auto next = std::upper_bound(uses.begin(), uses.end(), call);
  if (next != uses.end()) return *next;
  return step_.items[item].lives_through() ? calls_ + uses.front() : calls_;
}

StepSimulator::Outcome StepSimulator::run(const std::vector<PlannedRelease>& releases,
                                          double enough) {
  set_plan(releases);
  if (!resume()) begin();
  auto [next, next_reload] = begun_before(now_);
  for (; now_ < calls_ && outcome_.possible; ++now_) {
    save();
    run_ops_before(now_);
    run_call(now_);
    for (; next < releases_.size() && releases_[next].from == now_; ++next) {
      release(releases_[next]);
    }
    for (; next_reload < reloads_.size() && releases_[reloads_[next_reload]].reload_at == now_;
         ++next_reload) {
      due_.push_back(releases_[reloads_[next_reload]].item);
    }
    bring_due();
    free_after(step_.calls[now_].op);
    if (now_ + 1 == calls_) wait_for_copies_between_steps();
    outcome_.short_overall += Bytes(short_by_);  // the call's largest shortfall
    short_by_ = std::max<int64_t>(0, live_ - space_);
    const Nanos left =
        now_ + 1 < calls_ ? step_.duration - step_.calls[now_ + 1].begin : Nanos(0);
    outcome_.cost = static_cast<double>((outcome_.time + left).count()) +
                    shortfall_price_ * bytes_short() +
                    kPriceOfCopies * static_cast<double>(outcome_.copied.count());
    ++outcome_.calls;
    if (outcome_.cost > enough) break;
  }
  if (!outcome_.possible) outcome_.cost = std::numeric_limits<double>::infinity();
  return outcome_;
}

double StepSimulator::bytes_short() const {
  return static_cast<double>(outcome_.shortfall.count()) +
         static_cast<double>(outcome_.short_overall.count()) / static_cast<double>(calls_);
}

void StepSimulator::set_plan(const std::vector<PlannedRelease>& releases) {
  releases_ = releases;
  if (!std::is_sorted(releases_.begin(), releases_.end(), begins_earlier)) {
    std::stable_sort(releases_.begin(), releases_.end(), begins_earlier);
  }
  reloads_.clear();
  for (uint32_t r = 0; r < releases_.size(); ++r) {
    if (releases_[r].action == Release::kOffload) reloads_.push_back(r);
  }
  std::stable_sort(reloads_.begin(), reloads_.end(), [&](uint32_t a, uint32_t b) {
    return releases_[a].reload_at < releases_[b].reload_at;
  });
  // What is written has to be simulated from the start.
  parts_after_ = settled_ && !writer_ ? parting_of(*settled_, releases_, calls_) : 0;
}

// --- moments of the plan settled on ---

void StepSimulator::settle() {
  settled_ = releases_;
  saved_ = std::min<size_t>(saved_, parts_after_ / between_moments_);
}

// Moment m is the beginning of call (m + 1) * between_moments_.
void StepSimulator::save() {
  if (now_ > parts_after_ || now_ != (saved_ + 1) * between_moments_) return;
  if (moments_.size() == saved_) moments_.emplace_back();
  moments_[saved_++] = state();
}

bool StepSimulator::resume() {
  const auto shared = std::min<size_t>(saved_, parts_after_ / between_moments_);
  if (shared == 0) return false;
  state() = moments_[shared - 1];
  now_ = static_cast<uint32_t>(shared) * between_moments_;
  outcome_.calls = 0;
  return true;
}

// How many releases, and how many reloads, calls before `call` began.
std::pair<size_t, size_t> StepSimulator::begun_before(uint32_t call) const {
  const auto release =
      std::partition_point(releases_.begin(), releases_.end(),
                           [&](const PlannedRelease& it) { return it.from < call; });
  const auto reload = std::partition_point(reloads_.begin(), reloads_.end(), [&](uint32_t r) {
    return releases_[r].reload_at < call;
  });
  return {release - releases_.begin(), reload - reloads_.begin()};
}

// --- the step ---

void StepSimulator::begin() {
  outcome_ = {};
  live_ = short_by_ = 0;
  now_ = 0;
  link_ = idle_;
  evictable_.clear();
  evicted_.clear();
  leaving_.clear();
  due_.clear();
  ahead_.clear();
  items_ = before_step_;
  send_away_between_steps();
  for (const uint32_t i : existing_) {
    if (!items_[i].resident()) continue;
    live_ += bytes(i);
    if (writer_) writer_->begin_with(i);
  }
  if (writer_) write_begin(foreign_);
  // Other items that are to be away over the step's end are copied out now.
  for (const PlannedRelease& release : releases_) {
    if (release.wraps() && !away_between(release)) copy_out(release.item);
  }
}

// These items were copied out in the previous step, after their last use.
void StepSimulator::send_away_between_steps() {
  for (const PlannedRelease& release : releases_) {
    if (!away_between(release)) continue;
    items_[release.item].copy_out();
    items_[release.item].leave(Residence::kOffloaded);
  }
}

// Runs the program's uploads and reads since the previous call.
void StepSimulator::run_ops_before(uint32_t call) {
  uint32_t op = call == 0 ? 0 : step_.calls[call - 1].op + 1;
  const auto end =
      call == calls_ ? static_cast<uint32_t>(trace_.ops.size()) : step_.calls[call].op;
  for (; op < end; ++op) {
    if (trace_.ops[op].kind == StepTrace::Kind::kUpload) {
      upload(op);
    } else {
      read(op);
    }
    free_after(op);
  }
}

// The program waits for the value, so the item has to be available.
void StepSimulator::read(uint32_t op) {
  const uint32_t item = trace_.ops[op].inputs.front().storage;
  if (!items_[item].available()) compute_again(item);
  if (!outcome_.possible) return;
  fetch(item);
  add(Do::kRead, op);
}

void StepSimulator::free_after(uint32_t op) {
  for (const uint32_t item : trace_.ops[op].released) {
    free(item);
  }
}

void StepSimulator::upload(uint32_t op) {
  const uint32_t item = trace_.ops[op].outputs.front();
  take_space(bytes(item));
  items_[item].take_block();
  items_[item].coming = true;
  items_[item].ready = link_.in(step_.items[item].bytes, outcome_.time);
  add(Do::kUpload, op);
  if (writer_) writer_->take(item, step_.items[item].bytes);
  pin_copy(item);
}

void StepSimulator::run_call(uint32_t call) {
  const auto inputs = step_.inputs(call);
  for (const uint32_t input : inputs) ++items_[input].claims;
  for (const uint32_t input : inputs) {
    if (!items_[input].available()) compute_again(input);
  }
  for (const uint32_t written : writes_[call]) protect_readers_of(written);
  issue(call, /*again=*/false);
  for (const uint32_t input : inputs) --items_[input].claims;
  auto next = next_uses_[call].begin();
  const auto used = [&](uint32_t item) {
    State& state = items_[item];
    state.next = *next++;
    state.evictable = state.ahead = false;
  };
  for (const uint32_t input : inputs) used(input);
  for (const uint32_t output : step_.outputs(call)) used(output);
  for (const uint32_t written : step_.written(call)) {
    State& state = items_[written];
    state.written = call + 1;
    if (state.has_copy()) state.drop_copy();
  }
}

// The next step begins without these items, and with an idle link.
void StepSimulator::wait_for_copies_between_steps() {
  for (const PlannedRelease& release : releases_) {
    if (away_between(release)) wait_until(items_[release.item].ready);
  }
}

// Collects in again_ the calls that have to run for the item, inputs before users. Returns
// false if it cannot be recomputed.
bool StepSimulator::collect(uint32_t item) {
  again_.clear();
  pending_.clear();
  ++walk_;
  const auto enter = [&](uint32_t source) {
    const StepTable::Item& wanted = step_.items[source];
    if (wanted.producer == kNone || !wanted.may_evict || wanted.producer >= now_) return false;
    if (seen_[wanted.producer] == walk_) return true;
    seen_[wanted.producer] = walk_;
    pending_.emplace_back(wanted.producer, 0);
    return true;
  };
  if (!enter(item)) return false;
  while (!pending_.empty()) {
    auto& [call, next] = pending_.back();
    const auto inputs = step_.inputs(call);
    if (next == inputs.size()) {
      again_.push_back(call);
      pending_.pop_back();
      continue;
    }
    const uint32_t input = inputs[next++];
    if (items_[input].written > call) return false;
    if (!items_[input].available() && !enter(input)) return false;
  }
  return true;
}

void StepSimulator::compute_again(uint32_t item) {
  outcome_.possible = outcome_.possible && collect(item);
  if (!outcome_.possible) return;
  ++items_[item].claims;
  for (const uint32_t call : again_) {
    for (const uint32_t input : step_.inputs(call)) ++items_[input].claims;
  }
  for (const uint32_t call : again_) {
    issue(call, /*again=*/true);
    for (const uint32_t input : step_.inputs(call)) {
      if (--items_[input].claims == 0 && ended(input)) free(input);
    }
  }
  --items_[item].claims;
}

// Items that would be recomputed from the old contents come back first, oldest first, and stay.
void StepSimulator::protect_readers_of(uint32_t written) {
  std::erase_if(evicted_,
                [&](uint32_t item) { return !items_[item].evicted() || ended(item); });
  std::vector<uint32_t> readers;
  for (const uint32_t item : evicted_) {
    if (reaches(item, written)) readers.push_back(item);
  }
  std::sort(readers.begin(), readers.end());
  for (const uint32_t item : readers) {
    if (!items_[item].available()) compute_again(item);
    items_[item].evictable = false;
    items_[item].fixed = true;
  }
}

// Whether recomputing the item would read `target`.
bool StepSimulator::reaches(uint32_t item, uint32_t target) {
  ++walk_;
  pending_.assign(1, {item, 0});
  while (!pending_.empty()) {
    const uint32_t producer = step_.items[pending_.back().first].producer;
    pending_.pop_back();
    if (producer == kNone || seen_[producer] == walk_) continue;
    seen_[producer] = walk_;
    for (const uint32_t input : step_.inputs(producer)) {
      if (input == target) return true;
      const bool stays = items_[input].available() && (!ended(input) || items_[input].fixed);
      if (!stays) pending_.emplace_back(input, 0);
    }
  }
  return false;
}

// Whether the output gets a block; other outputs are written to scratch.
bool StepSimulator::missing(uint32_t output, bool again) const {
  const State& state = items_[output];
  return !again || (!state.available() && (state.claims > 0 || !ended(output)));
}

// The input whose space the call's first output takes. Not while a copy still reads it: compute
// would wait for that.
uint32_t StepSimulator::overwritten_by(uint32_t call, bool again) const {
  const uint32_t item = step_.calls[call].overwrites;
  if (again || item == kNone) return kNone;
  const State& state = items_[item];
  const bool free = state.resident() && state.claims == 1 && state.ready <= outcome_.time;
  return free ? item : kNone;
}

// REQUIRES: no input has to be computed.
void StepSimulator::issue(uint32_t call, bool again) {
  const StepTable::Call& it = step_.calls[call];
  const auto outputs = step_.outputs(call);
  for (const uint32_t input : step_.inputs(call)) {
    // Back earlier than planned: its copy is still on the tier, so the item may go again.
    const bool early = again && items_[input].offloaded();
    fetch(input);
    if (early) mark_evictable(input);
  }
  for (const uint32_t written : step_.written(call)) wait_until(items_[written].ready);
  int64_t kept = 0, scratch = it.workspace.count();
  for (const uint32_t output : outputs) {
    (missing(output, again) ? kept : scratch) += bytes(output);
  }
  const uint32_t overwritten = overwritten_by(call, again);
  if (overwritten != kNone) kept -= bytes(overwritten);
  // A resident output is not evicted for this: it would be written to scratch and then be lost.
  for (const uint32_t output : outputs) ++items_[output].claims;
  take_space(kept + scratch);
  for (const uint32_t output : outputs) --items_[output].claims;
  live_ -= scratch;
  if (writer_) write_run(call, again, overwritten);
  if (overwritten != kNone) {
    State& state = items_[overwritten];
    if (state.has_copy()) state.drop_copy();
    state.leave(Residence::kDead);
    state.evictable = state.ahead = false;
  }
  for (const uint32_t output : outputs) {
    if (!missing(output, again)) continue;
    items_[output].take_block();
    if (again && !ended(output)) mark_evictable(output);
  }
  outcome_.time += it.cost;
  if (again) outcome_.recomputed += it.cost;
  link_.forget_before(outcome_.time);
}

// Waits for the item if it is on its way or on a tier.
void StepSimulator::fetch(uint32_t item) {
  State& state = items_[item];
  if (state.offloaded()) copy_in(item);
  if (!state.coming) return;
  wait_until(state.ready);
  state.coming = false;
}

void StepSimulator::copy_in(uint32_t item) {
  take_space(bytes(item));
  add(Do::kCopyIn, item);
  if (writer_) writer_->take(item, step_.items[item].bytes);
  State& state = items_[item];
  outcome_.copied += in_time_[item];
  state.take_block();
  state.coming = true;
  state.ready = link_.in(step_.items[item].bytes, std::max(outcome_.time, state.ready));
  pin_copy(item);
}

void StepSimulator::wait_until(Nanos time) {
  if (time <= outcome_.time) return;
  outcome_.waited += time - outcome_.time;
  outcome_.time = time;
}

// Counts `need` as live once there is space for it, or nothing more to release.
void StepSimulator::take_space(int64_t need) {
  while (live_ + need > space_) {
    release_copied();
    if (live_ + need <= space_) break;
    const uint32_t best = best_to_drop();
    const bool copied = best != kNone && items_[best].has_copy();
    if (best != kNone && (!copied || items_[best].ready <= outcome_.time)) {
      give_up(best);
      continue;
    }
    // Only copies under way are left: waits for the first that ends.
    constexpr Nanos kNever{std::numeric_limits<int64_t>::max()};
    Nanos first = best == kNone ? kNever : items_[best].ready;
    for (const Leaving& left : leaving_) first = std::min(first, left.ready);
    if (first != kNever) {
      wait_until(first);
    } else if (!sends_back_ || !send_back()) {
      break;
    }
  }
  live_ += need;
  if (live_ - space_ > short_by_) {
    outcome_.shortfall += Bytes(live_ - space_ - short_by_);
    short_by_ = live_ - space_;
  }
}

// Among evictable items, the one that frees the most for longest. If all are being copied, the
// one whose copy ends first.
uint32_t StepSimulator::best_to_drop() const {
  uint32_t best = kNone;
  double most = -1;
  for (const uint32_t item : evictable_) {
    const State& state = items_[item];
    if (!state.evictable || state.claims > 0) continue;
    if (!state.has_copy() || state.ready <= outcome_.time) {
      const double use =
          static_cast<double>(bytes(item)) * static_cast<double>(state.next - now_);
      if (use > most || (use == most && item < best)) {
        most = use;
        best = item;
      }
    } else if (most < 0 && (best == kNone || state.ready < items_[best].ready)) {
      best = item;
    }
  }
  return best;
}

// An item that came back before its use goes again, as its copy is still there: the one used
// last.
bool StepSimulator::send_back() {
  std::erase_if(ahead_, [&](uint32_t item) { return !items_[item].ahead; });
  uint32_t last = kNone;
  for (const uint32_t item : ahead_) {
    const State& state = items_[item];
    const bool may_go = state.resident() && state.has_copy() && state.claims == 0;
    if (may_go && (last == kNone || state.next > items_[last].next)) last = item;
  }
  if (last == kNone) return false;
  wait_until(items_[last].ready);
  give_up(last);
  due_.insert(due_.begin(), last);
  return true;
}

void StepSimulator::release_copied() {
  std::erase_if(leaving_, [&](const Leaving& left) {
    if (left.ready > outcome_.time) return false;
    live_ -= bytes(left.item);
    if (writer_) writer_->end(left.block);
    return true;
  });
  std::erase_if(evictable_, [&](uint32_t item) { return !items_[item].evictable; });
}

// Offloads an item that has a copy, evicts any other.
void StepSimulator::give_up(uint32_t item) {
  const bool copied = items_[item].has_copy();
  add(copied ? Do::kOffload : Do::kEvict, item);
  leave(item, copied ? Residence::kOffloaded : Residence::kEvicted);
}

// The block's space is free once no copy reads or writes it.
void StepSimulator::leave(uint32_t item, Residence next) {
  State& state = items_[item];
  if (state.ready > outcome_.time) {
    leaving_.push_back({item, state.ready, writer_ ? writer_->block_of(item) : 0});
    if (writer_) writer_->pin(writer_->block_of(item));
  } else {
    live_ -= bytes(item);
    if (writer_) writer_->end(writer_->block_of(item));
  }
  state.leave(next);
  if (next == Residence::kEvicted) evicted_.push_back(item);
  state.coming = state.evictable = state.ahead = false;
  // The item may be recomputed into another block.
  if (next != Residence::kOffloaded) state.ready = Nanos(0);
}

// Nobody needs the item any more.
void StepSimulator::free(uint32_t item) {
  State& state = items_[item];
  if (state.available()) add(Do::kFree, item);
  if (state.has_copy()) state.drop_copy();
  if (state.resident()) {
    leave(item, Residence::kDead);
  } else if (state.evicted()) {
    state.die();
    state.ready = Nanos(0);
  }
}

void StepSimulator::mark_evictable(uint32_t item) {
  State& state = items_[item];
  if (state.evictable) return;
  state.evictable = true;
  evictable_.push_back(item);
}

// An item that has a copy already stays as long as there is space, whichever way it is to go.
void StepSimulator::release(const PlannedRelease& release) {
  const uint32_t item = release.item;
  State& state = items_[item];
  const bool comes_again = away_between(release) && step_.items[item].lives_through();
  if (!state.resident() || state.coming || (release.wraps() && !comes_again)) return;
  if (release.action == Release::kEvict && state.fixed) return;
  std::erase(due_, item);  // due since an earlier release, but fetched when it was needed
  if (release.action == Release::kEvict && !state.has_copy()) {
    give_up(item);
    return;
  }
  copy_out(item);
}

void StepSimulator::copy_out(uint32_t item) {
  State& state = items_[item];
  if (!state.has_copy()) {
    add(Do::kCopyOut, item);
    outcome_.copied += out_time_[item];
    state.copy_out();
    state.ready = link_.out(step_.items[item].bytes, outcome_.time);
    pin_copy(item);
  }
  mark_evictable(item);
}

// Without waiting, and only in place of what is needed later.
bool StepSimulator::make_space_for(uint32_t item) {
  if (live_ + bytes(item) > space_) release_copied();
  while (live_ + bytes(item) > space_) {
    const uint32_t best = best_to_drop();
    if (best == kNone || items_[best].next <= items_[item].next) return false;
    if (!items_[best].has_copy() || items_[best].ready > outcome_.time) return false;
    give_up(best);
  }
  return true;
}

void StepSimulator::bring_due() {
  size_t done = 0;
  for (; done < due_.size(); ++done) {
    const uint32_t item = due_[done];
    State& state = items_[item];
    bool ahead = state.evictable;  // has not been dropped at all
    if (state.offloaded()) {
      if (!make_space_for(item)) break;  // tried again after the next call
      copy_in(item);
      ahead = true;
    }
    state.evictable = false;
    if (ahead && !std::exchange(state.ahead, true)) ahead_.push_back(item);
  }
  due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(done));
}

// --- writing ---

StepSimulator::Outcome StepSimulator::write(const std::vector<PlannedRelease>& releases,
                                            const std::vector<Bytes>& foreign,
                                            UnplacedSchedule& schedule) {
  ScheduleWriter writer(trace_);
  writer_ = &writer;
  foreign_ = foreign;
  const Outcome outcome = run(releases);
  run_ops_before(calls_);
  release_copied();
  const auto end = [&](uint32_t item) { writer.end(writer.block_of(item)); };
  for (uint32_t item = 0; item < items_.size(); ++item) {
    if (items_[item].resident()) end(item);
  }
  for (uint32_t k = 0; k < foreign.size(); ++k) writer.end(foreign_block_ + k);
  for (const Leaving& left : leaving_) writer.end(left.block);
  schedule = writer.finish();
  schedule.schedule.foreign = foreign;
  schedule.schedule.time = outcome.time;
  schedule.schedule.recomputed = outcome.recomputed;
  schedule.schedule.shortfall = outcome.shortfall;
  writer_ = nullptr;
  return outcome;
}

// Foreign blocks never move.
void StepSimulator::write_begin(const std::vector<Bytes>& foreign) {
  foreign_block_ = writer_->block_count();
  const auto first = static_cast<uint32_t>(step_.items.size());
  for (uint32_t k = 0; k < foreign.size(); ++k) {
    writer_->take_foreign(first + k, foreign[k]);
    writer_->pin(foreign_block_ + k);
  }
  writer_->end_of_beginning();
}

void StepSimulator::write_run(uint32_t call, bool again, uint32_t overwritten) {
  const uint32_t op = step_.calls[call].op;
  writer_->add(Do::kRun, op, outcome_.time, again);
  if (overwritten != kNone) writer_->overwrite(overwritten);
  for (const uint32_t output : step_.outputs(call)) {
    const bool kept = missing(output, again);
    writer_->take(kept ? output : Schedule::kScratch, step_.items[output].bytes);
    // The program has let go of the item, so nothing can tell where to move it.
    if (kept && again && ended(output)) writer_->pin(writer_->block_of(output));
  }
  if (step_.calls[call].workspace > Bytes(0)) {
    writer_->take(Schedule::kScratch, step_.calls[call].workspace);
  }
}

void StepSimulator::add(Do what, uint32_t item) {
  if (writer_) writer_->add(what, item, outcome_.time);
}

// Pins the block of a copy, begun by the instruction added last, until the item is ready.
void StepSimulator::pin_copy(uint32_t item) {
  if (writer_) writer_->pin_copy(writer_->block_of(item), items_[item].ready);
}

}  // namespace tidemark::planner
