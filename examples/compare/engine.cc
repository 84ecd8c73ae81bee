#include "examples/compare/engine.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark::compare {
namespace {

constexpr size_t kNoticesKept = 30;
constexpr double kDefaultShare = 0.5;
constexpr Bytes kUnlimited{int64_t{1} << 50};

// The time of a simulated step in which nothing is ever released. The second step is used: it
// is the first in which all state exists from the beginning.
Nanos simulate_unmanaged(SessionOptions options, const Program& program) {
  options.policy = "none";
  options.budget = kUnlimited;
  options.unmanaged_peak.reset();
  options.host_limit = options.disk_limit = Bytes(0);
  Session session(options);
  const std::vector<std::function<void()>> steps = program();
  session.step(steps[0]);
  return session.step(steps[std::min<size_t>(1, steps.size() - 1)]).duration;
}

std::string said(const LaneSpec& spec, Bytes budget) {
  return fmt::format("{} within {}", spec.name(), format_bytes(budget));
}

}  // namespace

Comparison::Comparison(ComparisonOptions options)
    : options_(std::move(options)),
      simulated_(options_.flags.on_simulator()),
      paused_(options_.paused) {
  if (options_.lanes.empty()) throw UsageError("there are no lanes to compare");
  if (options_.lanes.size() > kMaxLanes) {
    throw UsageError(fmt::format("there are {} lanes; at most {} can run at once",
                                 options_.lanes.size(), kMaxLanes));
  }
  prepare();
  const MutexLock lock(mutex_);
  budget_ = ground_.budget;
  for (const LaneSpec& spec : options_.lanes) budget_of(spec, ground_);
  for (const LaneSpec& spec : options_.lanes) add_lane(spec, 0);
}

Comparison::~Comparison() { stop(); }

void Comparison::prepare() {
  job_ = options_.open(/*with_data=*/!simulated_);
  about_ = fmt::format("{}; batch {}", job_->announcement(), job_->batch());
  steps_ = options_.steps.value_or(job_->steps());
  const Program program = job_->dry_run();
  SessionOptions& base = ground_.options = session_options(options_.flags);
  ground_.need = measure_unmanaged(base, program);
  const Bytes peak = ground_.need.peak;
  base.unmanaged_peak = peak;
  const Bytes host = arena_is_in_ram(options_.flags) ? Bytes(0) : 2 * peak;
  base.host_limit = options_.flags.host_limit.value_or(host);
  // Every lane has a disk tier, whether or not it is worth it, so that policies have the same
  // choices.
  set_disk_tier(options_.flags, peak, base);
  ground_.minimum = find_minimum_budget(base, program, ground_.need);
  if (options_.flags.budget) {
    ground_.budget = options_.flags.budget->resolve(peak);
    if (ground_.budget < ground_.minimum.budget) {
      throw InfeasibleBudget(ground_.budget, ground_.minimum.budget, ground_.minimum.is_least);
    }
  } else {
    ground_.budget = std::max(share_of(peak, kDefaultShare), ground_.minimum.budget);
  }
  if (simulated_) simulated_reference_ = simulate_unmanaged(base, program);
}

LaneSpec Comparison::with_budget(LaneSpec spec) const {
  if (spec.managed() && !spec.budget) spec.budget = Budget{.bytes = budget_};
  return spec;
}

Comparison::Worker& Comparison::worker_for_new_lane() {
  for (const auto& worker : workers_) {
    const bool idle = std::none_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
      return entry.second.worker == worker.get();
    });
    if (!simulated_ || idle) return *worker;
  }
  Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
  worker.thread = std::thread([this, &worker] { run(worker); });
  return worker;
}

int Comparison::free_colour() const {
  for (int colour = 0;; ++colour) {
    const bool taken = std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
      return entry.second.colour == colour;
    });
    if (!taken) return colour;
  }
}

void Comparison::add_lane(const LaneSpec& spec, uint64_t number) {
  const int id = next_lane_++;
  const int colour = free_colour();
  Entry& entry = entries_[id];
  entry.colour = colour;
  entry.planned = with_budget(spec);
  LaneView view;
  view.id = id;
  view.spec = entry.planned;
  view.budget = budget_of(entry.planned, ground_);
  entry.view = std::make_shared<const LaneView>(std::move(view));
  entry.worker = &worker_for_new_lane();
  order(*entry.worker,
        {number, {.what = Command::kAdd, .lane = id, .spec = entry.planned, .budget = {}}});
}

Comparison::Entry& Comparison::entry(int lane) {
  const auto at = entries_.find(lane);
  if (at == entries_.end()) {
    throw UsageError(fmt::format("there is no lane {}", lane));
  }
  return at->second;
}

void Comparison::order(Worker& worker, const Order& order) {
  worker.orders.push_back(order);
  const auto at = entries_.find(order.command.lane);
  if (at != entries_.end()) ++at->second.open_orders;
  if (order.number > 0) ++open_orders_[order.number];
}

void Comparison::set_budget(int lane, const Budget& budget, uint64_t number) {
  Entry& changed = entry(lane);
  LaneSpec spec = changed.planned;
  spec.budget = Budget{.bytes = budget.resolve(ground_.need.peak)};
  budget_of(spec, ground_);
  changed.planned = spec;
  order(*changed.worker,
        {number, {.what = Command::kSwitch, .lane = lane, .spec = spec, .budget = {}}});
}

uint64_t Comparison::submit(const Command& command) {
  const MutexLock lock(mutex_);
  if (stopping_) throw UsageError("the comparison is over");
  const uint64_t number = submitted_ + 1;
  switch (command.what) {
    case Command::kPause:
    case Command::kResume:
      paused_ = command.what == Command::kPause;
      note(number, paused_ ? "paused after the step" : "resumed", false);
      break;
    case Command::kAdd:
      if (entries_.size() >= kMaxLanes) {
        throw UsageError(fmt::format("there are {} lanes; remove one first", kMaxLanes));
      }
      budget_of(with_budget(command.spec), ground_);
      add_lane(command.spec, number);
      break;
    case Command::kSwitch: {
      Entry& lane = entry(command.lane);
      LaneSpec spec = command.spec;
      if (!spec.budget && spec.managed() && lane.planned.managed()) {
        spec.budget = lane.planned.budget;
      }
      spec = with_budget(spec);
      budget_of(spec, ground_);
      lane.planned = spec;
      order(*lane.worker,
            {number,
             {.what = Command::kSwitch, .lane = command.lane, .spec = spec, .budget = {}}});
      break;
    }
    case Command::kRemove: {
      Entry& lane = entry(command.lane);
      if (entries_.size() == 1) throw UsageError("the last lane cannot be removed");
      order(*lane.worker, {number, command});
      entries_.erase(command.lane);
      break;
    }
    case Command::kBudget: {
      if (!command.budget) throw UsageError("a budget is missing");
      if (command.lane != 0) {
        set_budget(command.lane, *command.budget, number);
        break;
      }
      LaneSpec any;
      any.budget = command.budget;
      budget_ = budget_of(any, ground_);
      for (auto& [id, lane] : entries_) {
        if (lane.planned.managed()) set_budget(id, *command.budget, number);
      }
      break;
    }
  }
  submitted_ = number;
  ++number_;
  changed_.notify_all();
  return number;
}

void Comparison::note(uint64_t command, const std::string& text, bool bad) {
  if (notices_.size() == kNoticesKept) notices_.erase(notices_.begin());
  notices_.push_back({command, bad, text});
  ++number_;
  changed_.notify_all();
}

void Comparison::done_with(const Order& order, const std::string& text, bool bad) {
  const MutexLock lock(mutex_);
  if (!text.empty()) note(order.number, text, bad);
  const auto lane = entries_.find(order.command.lane);
  if (lane != entries_.end()) {
    // A failed change is not waited for: the lane is what it shows.
    if (--lane->second.open_orders == 0) lane->second.planned = lane->second.view->spec;
    lane->second.phase = Phase::kWaiting;
  }
  const auto at = open_orders_.find(order.number);
  if (at != open_orders_.end() && --at->second == 0) open_orders_.erase(at);
  ++number_;
  changed_.notify_all();
}

void Comparison::publish(const Lane& lane) {
  auto view = std::make_shared<const LaneView>(lane.view());
  const MutexLock lock(mutex_);
  const auto at = entries_.find(lane.id());
  if (at == entries_.end()) return;  // being removed
  at->second.view = std::move(view);
  at->second.phase = Phase::kWaiting;
  ++number_;
  changed_.notify_all();
}

void Comparison::set_phase(int lane, Phase phase) {
  const MutexLock lock(mutex_);
  const auto at = entries_.find(lane);
  if (at == entries_.end() || at->second.phase == phase) return;
  at->second.phase = phase;
  ++number_;
  changed_.notify_all();
}

bool Comparison::has_step_to_do(const Lane& lane) const {
  return lane.runs() && (steps_ == 0 || lane.steps_done() < steps_);
}

// Returns false at the end.
bool Comparison::wait_for_work(Worker& worker, std::vector<Order>& orders) {
  const auto begin = std::chrono::steady_clock::now();
  const auto due = options_.rate > 0
                       ? begin + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::duration<double>(1 / options_.rate))
                       : begin;
  const bool steps = std::any_of(worker.lanes.begin(), worker.lanes.end(),
                                 [this](const auto& lane) { return has_step_to_do(*lane); });
  const MutexLock lock(mutex_);
  while (!stopping_ && worker.orders.empty()) {
    if (!steps || paused_) {
      changed_.wait(mutex_);
    } else if (std::chrono::steady_clock::now() < due) {
      changed_.wait_until(mutex_, due);
    } else {
      break;
    }
  }
  orders = std::exchange(worker.orders, {});
  return !stopping_;
}

void Comparison::run(Worker& worker) {
  std::vector<Order> orders;
  while (wait_for_work(worker, orders)) {
    for (const Order& order : orders) apply(worker, order);
    {
      const MutexLock lock(mutex_);
      if (paused_ || !worker.orders.empty()) continue;
    }
    for (const auto& lane : worker.lanes) {
      {
        const MutexLock lock(mutex_);
        if (stopping_) break;
      }
      if (has_step_to_do(*lane)) step(*lane);
    }
  }
  for (const auto& lane : worker.lanes) {
    if (!lane->runs()) continue;
    try {
      lane->finish();
    } catch (const std::exception& error) {
      lane->fail(error.what(), false);
    }
    publish(*lane);
  }
  worker.lanes.clear();
}

void Comparison::step(Lane& lane) {
  set_phase(lane.id(), Phase::kStepping);
  try {
    lane.step([&] { set_phase(lane.id(), Phase::kPlanning); });
    if (steps_ > 0 && lane.steps_done() >= steps_) lane.finish();
  } catch (const OutOfMemory& error) {
    lane.fail(error.what(), true);
  } catch (const std::exception& error) {
    lane.fail(error.what(), false);
  }
  const LaneView& view = lane.view();
  if (view.status == LaneStatus::kFailed) {
    done_with({}, lane.title() + " has failed: " + view.error, true);
  } else {
    const LaneStep done{view.steps_done - 1, view.spec.name(), view.budget, view.loss,
                        view.last};
    if (done.loss) {
      const MutexLock lock(mutex_);
      const int64_t before = losses_.mismatched();
      losses_.enter(done.step, lane.title(), *done.loss);
      if (losses_.mismatched() > before) {
        note(0, fmt::format("LOSSES DIFFER at step {}: {}", done.step, lane.title()), true);
      }
    }
    if (options_.on_step) options_.on_step(lane.id(), done);
  }
  publish(lane);
}

void Comparison::apply(Worker& worker, const Order& order) {
  const Command& command = order.command;
  const auto find = [&] {
    return std::find_if(worker.lanes.begin(), worker.lanes.end(),
                        [&](const auto& lane) { return lane->id() == command.lane; });
  };
  if (command.what == Command::kRemove) {
    const auto at = find();
    const std::string title = at == worker.lanes.end() ? "the lane" : (*at)->title();
    if (at != worker.lanes.end()) worker.lanes.erase(at);
    done_with(order, title + " is removed", false);
    return;
  }
  set_phase(command.lane, Phase::kPreparing);
  auto at = find();
  const bool is_new = at == worker.lanes.end();
  std::string text;
  bool bad = false;
  try {
    if (simulated_ && !worker.job) worker.job = options_.open(/*with_data=*/false);
    if (is_new) {
      worker.lanes.push_back(
          std::make_unique<Lane>(command.lane, worker.job ? *worker.job : *job_, ground_));
      at = worker.lanes.end() - 1;
    }
    // A lane without a usable state of its own takes that of a lane that has one.
    std::optional<CarriedState> state;
    if (order.number > 0 && !(*at)->usable()) {
      for (const auto& lane : worker.lanes) {
        if (!lane->usable()) continue;
        state = lane->carry_out();
        break;
      }
    }
    const std::string before = (*at)->title();
    const std::string kept = (*at)->open(command.spec, state);
    if (order.number > 0) {
      text = fmt::format("{} {} from step {} on",
                         is_new ? fmt::format("lane {}:", command.lane) : before + " now",
                         said((*at)->view().spec, (*at)->view().budget), (*at)->steps_done());
      if (!kept.empty()) text += ", with the state " + kept;
    }
    if (steps_ > 0 && (*at)->steps_done() >= steps_) (*at)->finish();
  } catch (const std::exception& error) {
    const std::string who = is_new
                                ? fmt::format("lane {} ({})", command.lane, command.spec.name())
                                : (*at)->title();
    if (at != worker.lanes.end() && !(*at)->runs()) {
      (*at)->fail(error.what(), dynamic_cast<const OutOfMemory*>(&error) != nullptr);
    }
    text = who + ": " + error.what();
    bad = true;
  }
  // Published first, so that anyone who sees that it is done also sees the result.
  if (at != worker.lanes.end()) publish(**at);
  done_with(order, text, bad);
}

std::shared_ptr<const Snapshot> Comparison::assemble() {
  if (latest_ && latest_->number == number_) return latest_;
  auto now = std::make_shared<Snapshot>();
  now->number = number_;
  now->job = about_;
  now->device = options_.flags.device;
  now->simulated = simulated_;
  now->steps = steps_;
  now->unmanaged_peak = ground_.need.peak;
  now->minimum = ground_.minimum.budget;
  now->budget = budget_;
  now->paused = paused_;
  now->finished = true;
  now->applied = open_orders_.empty() ? submitted_ : open_orders_.begin()->first - 1;
  for (const auto& [id, entry] : entries_) {
    now->lanes.push_back(entry.view);
    const LaneView& lane = *entry.view;
    LaneStanding& standing = now->standings.emplace_back();
    standing.colour = entry.colour;
    standing.phase = entry.phase;
    if (entry.open_orders > 0) {
      standing.pending = entry.planned;
      standing.pending_budget = budget_of(entry.planned, ground_);
    }
    if (lane.status == LaneStatus::kStarting || lane.status == LaneStatus::kRunning) {
      now->finished = false;
    }
    if (!simulated_ && !now->reference && lane.budget >= ground_.need.peak && lane.step_time) {
      now->reference = lane.step_time;
      now->reference_lane = id;
      now->reference_recent = lane.recent;
      now->reference_name = fmt::format("lane {}", id);
    }
  }
  if (simulated_) {
    now->reference = simulated_reference_;
    now->reference_name = "the simulator, without a budget";
  }
  now->losses_compared = losses_.compared();
  now->losses_mismatched = losses_.mismatched();
  now->mismatches = losses_.mismatches();
  now->notices = notices_;
  return latest_ = std::move(now);
}

std::shared_ptr<const Snapshot> Comparison::snapshot() {
  const MutexLock lock(mutex_);
  return assemble();
}

std::shared_ptr<const Snapshot> Comparison::wait_newer(uint64_t number,
                                                       std::chrono::milliseconds most) {
  const auto due = std::chrono::steady_clock::now() + most;
  const MutexLock lock(mutex_);
  while (number_ <= number && std::chrono::steady_clock::now() < due) {
    changed_.wait_until(mutex_, due);
  }
  return assemble();
}

std::shared_ptr<const Snapshot> Comparison::wait_until(
    const std::function<bool(const Snapshot&)>& done) {
  const MutexLock lock(mutex_);
  while (true) {
    auto now = assemble();
    const bool still = stopping_ || (now->finished && open_orders_.empty());
    if (done(*now) || still) return now;
    changed_.wait(mutex_);
  }
}

void Comparison::stop() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& worker : workers_) {
      if (worker->thread.joinable()) threads.push_back(std::move(worker->thread));
    }
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tidemark::compare
