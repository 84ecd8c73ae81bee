#include "runtime/policy/tide/step_rehearsal.h"

#include <algorithm>

namespace tidemark {
namespace {

// Of a copy's own time, even where compute hides it: it is not certain to.
constexpr double kPriceOfCopies = 0.01;

// Is there too little room for all that lives on, beside what some call needs?
bool cannot_stay_between(const StepTable& step, Bytes room) {
  Bytes there{0}, most{0};
  for (const StepTable::Item& item : step.items) {
    if (item.was_there()) there += item.bytes;
  }
  for (uint32_t call = 0; call < step.calls.size(); ++call) {
    Bytes needed = step.calls[call].workspace;
    for (const uint32_t input : step.inputs(call)) needed += step.items[input].bytes;
    for (const uint32_t output : step.outputs(call)) needed += step.items[output].bytes;
    most = std::max(most, needed);
  }
  return there + most > room;
}

}  // namespace

StepRehearsal::StepRehearsal(const StepTable& step, const PlanLimits& limits)
    : step_(step),
      calls_(static_cast<uint32_t>(step.calls.size())),
      room_(limits.room.count()),
      link_price_(1e9 / limits.out_bandwidth + 1e9 / limits.in_bandwidth),
      away_between_(cannot_stay_between(step, limits.room)),
      price_of_lacking_(link_price_),
      ends_(step.calls.size()),
      uploads_(step.calls.size()),
      writes_(step.calls.size()),
      next_uses_(step.calls.size()),
      seen_(step.calls.size()) {
  for (uint32_t i = 0; i < step.items.size(); ++i) {
    const StepTable::Item& item = step.items[i];
    out_time_.push_back(limits.out_time(item.bytes));
    in_time_.push_back(limits.in_time(item.bytes));
    if (item.uploaded && item.begin < calls_) uploads_[item.begin].push_back(i);
    if (item.persistent) continue;
    if (item.end > 0 && item.end <= calls_) ends_[item.end - 1].push_back(i);
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

// After that call; of the next step, if it lives on.
uint32_t StepRehearsal::next_use(uint32_t item, uint32_t call) const {
  const std::vector<uint32_t>& uses = step_.items[item].uses;
  const auto next = std::upper_bound(uses.begin(), uses.end(), call);
  if (next != uses.end()) return *next;
  return step_.items[item].persistent ? calls_ + uses.front() : calls_;
}

StepRehearsal::Outcome StepRehearsal::run(const std::vector<PlannedRelease>& releases,
                                          MemoryEvents* events, double enough) {
  events_ = events;
  begin(releases);
  size_t next = 0, next_reload = 0;
  for (now_ = 0; now_ < calls_ && outcome_.possible; ++now_) {
    for (const uint32_t item : uploads_[now_]) upload(item);
    run_call(now_);
    for (; next < releases_.size() && releases_[next].from == now_; ++next) {
      release(releases_[next]);
    }
    for (; next_reload < reloads_.size() && releases_[reloads_[next_reload]].reload_at == now_;
         ++next_reload) {
      due_.push_back(releases_[reloads_[next_reload]].item);
    }
    bring_due();
    note(Kind::kEndOfCall, kNone);
    for (const uint32_t item : ends_[now_]) leave(item, Place::kEvicted);
    if (away_between_ && now_ + 1 == calls_) wait_for_copies_between_steps();
    short_by_ = std::max<int64_t>(0, live_ - room_);
    const Nanos left =
        now_ + 1 < calls_ ? step_.duration - step_.calls[now_ + 1].begin : Nanos(0);
    outcome_.cost = static_cast<double>((outcome_.time + left).count()) +
                    price_of_lacking_ * static_cast<double>(outcome_.lacking.count()) +
                    kPriceOfCopies * static_cast<double>(outcome_.copied.count());
    ++outcome_.calls;
    if (outcome_.cost > enough) break;
  }
  if (!outcome_.possible) outcome_.cost = std::numeric_limits<double>::infinity();
  if (events_) {
    for (uint32_t item = 0; item < items_.size(); ++item) leave(item, Place::kNowhere);
    let_go_of_copied();
    for (const Leaving& left : leaving_) close(left.block);
    for (MemoryEvents::Stay& stay : events_->stays) {
      if (stay.end == 0) stay.end = events_->blocks[stay.block].end;
    }
  }
  return outcome_;
}

void StepRehearsal::begin(const std::vector<PlannedRelease>& releases) {
  outcome_ = {};
  live_ = short_by_ = 0;
  now_ = 0;
  link_out_ = link_in_ = Nanos(0);
  given_up_.clear();
  leaving_.clear();
  due_.clear();
  releases_ = releases;
  const auto earlier = [](const PlannedRelease& a, const PlannedRelease& b) {
    return a.from < b.from;
  };
  if (!std::is_sorted(releases_.begin(), releases_.end(), earlier)) {
    std::stable_sort(releases_.begin(), releases_.end(), earlier);
  }
  reloads_.clear();
  for (uint32_t r = 0; r < releases_.size(); ++r) {
    if (releases_[r].action == Action::kOffload) reloads_.push_back(r);
  }
  std::stable_sort(reloads_.begin(), reloads_.end(), [&](uint32_t a, uint32_t b) {
    return releases_[a].reload_at < releases_[b].reload_at;
  });
  items_.assign(step_.items.size(), {});
  for (uint32_t i = 0; i < items_.size(); ++i) {
    const StepTable::Item& item = step_.items[i];
    if (!item.was_there()) continue;
    items_[i].place = Place::kResident;
    items_[i].next = item.uses.empty() ? calls_ : item.uses.front();
  }
  if (events_) {
    *events_ = {};
    open_.assign(items_.size(), 0);
    under_way_.clear();
  }
  if (away_between_) send_away_between_steps();
  for (uint32_t i = 0; i < items_.size(); ++i) {
    if (items_[i].place != Place::kResident) continue;
    live_ += bytes(i);
    open(i, step_.items[i].bytes);
  }
  if (events_) events_->there = events_->blocks.size();
  if (away_between_) return;
  // What is to be away over the end is copied out now, so that it can be moved before.
  for (const PlannedRelease& release : releases_) {
    if (release.wraps()) copy_out(release.item);
  }
}

// What is to be away over the end was copied out then.
void StepRehearsal::send_away_between_steps() {
  for (const PlannedRelease& release : releases_) {
    if (!release.wraps()) continue;
    items_[release.item].place = Place::kOffloaded;
    items_[release.item].copied = true;
  }
}

void StepRehearsal::upload(uint32_t item) {
  take_room(bytes(item));
  note(Kind::kBlock, item);
  open(item, step_.items[item].bytes);
  link_in_ = std::max(link_in_, outcome_.time) + in_time_[item];
  items_[item].place = Place::kComing;
  items_[item].ready = link_in_;
  note_copy(item);
}

void StepRehearsal::run_call(uint32_t call) {
  const auto inputs = step_.inputs(call);
  for (const uint32_t input : inputs) ++items_[input].wanted;
  for (const uint32_t input : inputs) {
    if (away(input)) compute_again(input);
  }
  for (const uint32_t written : writes_[call]) protect_readers_of(written);
  issue(call, /*again=*/false);
  for (const uint32_t input : inputs) --items_[input].wanted;
  auto next = next_uses_[call].begin();
  const auto used = [&](uint32_t item) {
    State& state = items_[item];
    state.next = *next++;
    state.given_up = false;
    if (!step_.items[item].may_evict) state.copied = false;  // it may have been written
  };
  for (const uint32_t input : inputs) used(input);
  for (const uint32_t output : step_.outputs(call)) used(output);
  for (const uint32_t written : step_.written(call)) items_[written].written = call + 1;
}

// The next step begins without what is away, and so with none of the link's time owed.
void StepRehearsal::wait_for_copies_between_steps() {
  for (const PlannedRelease& release : releases_) {
    if (release.wraps()) wait_until(items_[release.item].ready);
  }
}

// The calls that have to run for it, inputs before users, in again_. False: it cannot be had.
bool StepRehearsal::collect(uint32_t item) {
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
    if (away(input) && !enter(input)) return false;
  }
  return true;
}

void StepRehearsal::compute_again(uint32_t item) {
  outcome_.possible = outcome_.possible && collect(item);
  if (!outcome_.possible) return;
  ++items_[item].wanted;
  for (const uint32_t call : again_) {
    for (const uint32_t input : step_.inputs(call)) ++items_[input].wanted;
  }
  for (const uint32_t call : again_) {
    issue(call, /*again=*/true);
    for (const uint32_t input : step_.inputs(call)) {
      if (--items_[input].wanted == 0 && ended(input)) leave(input, Place::kEvicted);
    }
  }
  --items_[item].wanted;
}

// What would be computed again from what is about to be written comes back first, the oldest
// first, and stays.
void StepRehearsal::protect_readers_of(uint32_t written) {
  std::vector<uint32_t> readers;
  for (const PlannedRelease& release : releases_) {
    const uint32_t item = release.item;
    const bool evicted = items_[item].place == Place::kEvicted && !ended(item);
    if (evicted && reaches(item, written)) readers.push_back(item);
  }
  std::sort(readers.begin(), readers.end());
  for (const uint32_t item : readers) {
    if (away(item)) compute_again(item);
    items_[item].given_up = false;
    items_[item].fixed = true;
  }
}

// Would computing it again read `target`?
bool StepRehearsal::reaches(uint32_t item, uint32_t target) {
  ++walk_;
  pending_.assign(1, {item, 0});
  while (!pending_.empty()) {
    const uint32_t producer = step_.items[pending_.back().first].producer;
    pending_.pop_back();
    if (producer == kNone || seen_[producer] == walk_) continue;
    seen_[producer] = walk_;
    for (const uint32_t input : step_.inputs(producer)) {
      if (input == target) return true;
      const bool stays = !away(input) && (!ended(input) || items_[input].fixed);
      if (!stays) pending_.emplace_back(input, 0);
    }
  }
  return false;
}

// Others are written to scratch.
bool StepRehearsal::missing(uint32_t output, bool again) const {
  const State& state = items_[output];
  return !again || (state.place == Place::kEvicted && (state.wanted > 0 || !ended(output)));
}

// REQUIRES: no input has to be computed.
void StepRehearsal::issue(uint32_t call, bool again) {
  const StepTable::Call& it = step_.calls[call];
  const auto outputs = step_.outputs(call);
  for (const uint32_t input : step_.inputs(call)) fetch(input);
  int64_t kept = 0, scratch = it.workspace.count();
  for (const uint32_t output : outputs) {
    (missing(output, again) ? kept : scratch) += bytes(output);
  }
  // One that is here is not evicted for this: it would be written to scratch, and gone after.
  for (const uint32_t output : outputs) ++items_[output].wanted;
  take_room(kept + scratch);
  for (const uint32_t output : outputs) --items_[output].wanted;
  live_ -= scratch;
  const size_t first = events_ ? events_->blocks.size() : 0;
  for (const uint32_t output : outputs) {
    const uint32_t item = missing(output, again) ? output : kNone;
    note(Kind::kBlock, item);
    open(item, step_.items[output].bytes);
    if (item == kNone) continue;
    items_[item].place = Place::kResident;
    if (again && !ended(item)) give_up(item);
  }
  if (events_) {
    if (it.workspace > Bytes(0)) {
      note(Kind::kBlock, kNone);
      open(kNone, it.workspace);
    }
    for (size_t b = first; b < events_->blocks.size(); ++b) {
      MemoryEvents::Block& block = events_->blocks[b];
      const size_t now = events_->events.size();
      if (block.item == kNone) {
        block.end = now;
      } else {
        events_->stays.push_back({b, block.begin, ended(block.item) ? 0 : now});
      }
    }
  }
  outcome_.time += it.cost;
  if (again) outcome_.recomputed += it.cost;
}

// Waits for it, if it is on its way or on a tier.
void StepRehearsal::fetch(uint32_t item) {
  State& state = items_[item];
  if (state.place == Place::kOffloaded) reload(item, Kind::kBlock);
  if (state.place != Place::kComing) return;
  wait_until(state.ready);
  state.place = Place::kResident;
}

void StepRehearsal::reload(uint32_t item, Kind kind) {
  take_room(bytes(item));
  note(kind, item);
  open(item, step_.items[item].bytes);
  State& state = items_[item];
  link_in_ = std::max({link_in_, outcome_.time, state.ready}) + in_time_[item];
  outcome_.copied += in_time_[item];
  state.place = Place::kComing;
  state.ready = link_in_;
  note_copy(item);
}

void StepRehearsal::wait_until(Nanos time) {
  if (time <= outcome_.time) return;
  outcome_.waited += time - outcome_.time;
  outcome_.time = time;
}

// Counts `need` as live, when there is room for it or nothing more to be had.
void StepRehearsal::take_room(int64_t need) {
  while (live_ + need > room_) {
    let_go_of_copied();
    if (live_ + need <= room_) break;
    const uint32_t best = best_to_drop();
    const bool copied = best != kNone && items_[best].copied;
    if (best != kNone && (!copied || items_[best].ready <= outcome_.time)) {
      note(copied ? Kind::kOffload : Kind::kEvict, best);
      leave(best, copied ? Place::kOffloaded : Place::kEvicted);
      continue;
    }
    // Only copies under way are left: the one that is done first.
    constexpr Nanos kNever{std::numeric_limits<int64_t>::max()};
    Nanos first = best == kNone ? kNever : items_[best].ready;
    for (const Leaving& left : leaving_) first = std::min(first, left.ready);
    if (first == kNever) break;
    wait_until(first);
  }
  live_ += need;
  if (live_ - room_ > short_by_) {
    outcome_.lacking += Bytes(live_ - room_ - short_by_);
    short_by_ = live_ - room_;
  }
}

// Of what has been given up, what frees most for longest; if all of that is being copied, the
// one that is out first.
uint32_t StepRehearsal::best_to_drop() const {
  uint32_t best = kNone;
  double most = -1;
  for (const uint32_t item : given_up_) {
    const State& state = items_[item];
    if (!state.given_up || state.wanted > 0) continue;
    if (!state.copied || state.ready <= outcome_.time) {
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

void StepRehearsal::let_go_of_copied() {
  std::erase_if(leaving_, [&](const Leaving& left) {
    if (left.ready > outcome_.time) return false;
    live_ -= bytes(left.item);
    close(left.block);
    return true;
  });
  std::erase_if(given_up_, [&](uint32_t item) { return !items_[item].given_up; });
}

// Its room is free once no copy reads or writes it any more.
void StepRehearsal::leave(uint32_t item, Place place) {
  State& state = items_[item];
  if (state.place == Place::kResident || state.place == Place::kComing) {
    if (state.ready > outcome_.time) {
      leaving_.push_back({item, state.ready, events_ ? open_[item] : 0});
      if (events_) events_->stays.push_back({open_[item], events_->events.size() - 1, 0});
    } else {
      live_ -= bytes(item);
      if (events_) close(open_[item]);
    }
  }
  state.place = place;
  if (place == Place::kEvicted) {  // it may be computed again, into another block
    state.copied = false;
    state.ready = Nanos(0);
  }
  state.given_up = false;
}

void StepRehearsal::give_up(uint32_t item) {
  State& state = items_[item];
  if (state.given_up) return;
  state.given_up = true;
  given_up_.push_back(item);
}

// What has a copy already stays for as long as there is room, however it is to go.
void StepRehearsal::release(const PlannedRelease& release) {
  const uint32_t item = release.item;
  State& state = items_[item];
  if (state.place != Place::kResident || (release.wraps() && !away_between_)) return;
  if (release.action == Action::kEvict && state.fixed) return;
  if (release.action == Action::kEvict && !state.copied) {
    note(Kind::kEvict, item);
    leave(item, Place::kEvicted);
    return;
  }
  copy_out(item);
}

void StepRehearsal::copy_out(uint32_t item) {
  State& state = items_[item];
  if (!state.copied) {
    note(Kind::kCopyOut, item);
    link_out_ = std::max(link_out_, outcome_.time) + out_time_[item];
    outcome_.copied += out_time_[item];
    state.copied = true;
    state.ready = link_out_;
    note_copy(item);
  }
  give_up(item);
}

void StepRehearsal::bring_due() {
  size_t done = 0;
  for (; done < due_.size(); ++done) {
    const uint32_t item = due_[done];
    if (items_[item].place == Place::kOffloaded) {
      if (live_ + bytes(item) > room_) break;  // again after the next call
      reload(item, Kind::kPrefetch);
    }
    items_[item].given_up = false;
  }
  due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(done));
}

void StepRehearsal::note(Kind kind, uint32_t item) {
  if (!events_) return;
  std::erase_if(under_way_, [&](const auto& copy) {
    if (copy.first > outcome_.time) return false;
    events_->stays[copy.second].end = events_->events.size();
    return true;
  });
  events_->events.push_back({kind, item});
}

// Begun by the event noted last, it goes on until the item is ready.
void StepRehearsal::note_copy(uint32_t item) {
  if (!events_) return;
  under_way_.emplace_back(items_[item].ready, events_->stays.size());
  events_->stays.push_back({open_[item], events_->events.size() - 1, 0});
}

// A block, taken by the event noted last.
void StepRehearsal::open(uint32_t item, Bytes size) {
  if (!events_) return;
  if (item != kNone) open_[item] = events_->blocks.size();
  const size_t begin = events_->events.empty() ? 0 : events_->events.size() - 1;
  events_->blocks.push_back({item, size, begin, 0});
}

void StepRehearsal::close(size_t block) {
  if (events_) events_->blocks[block].end = events_->events.size();
}

}  // namespace tidemark
