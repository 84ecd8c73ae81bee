#include "examples/planning/show_schedule.h"

#include <algorithm>
#include <array>
#include <vector>

#include "examples/common/console.h"
#include "examples/common/program.h"
#include "runtime/core/listed.h"
#include "runtime/planner/baselines/parallel_safe.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"

namespace tidemark {
namespace {

using Do = Schedule::Do;

constexpr size_t kShown = 12;  // largest releases shown

// Bytes of residents that the schedule leaves out of its addresses.
Bytes residents_apart(const SavedSchedule& saved) {
  Bytes sum{0};
  if (!saved.schedule.residents_apart) return sum;
  for (const StepTrace::Storage& storage : saved.trace.storages) {
    if (storage.at_start && storage.at_end) sum += storage.size;
  }
  for (const Bytes size : saved.schedule.foreign) sum += size;
  return sum;
}

// The number of operators that do not run right after their predecessor in program order.
size_t out_of_order(const Schedule& schedule) {
  size_t moved = 0;
  uint32_t next = 0;
  for (const auto& it : schedule.code) {
    if (!is_program_op(it)) continue;
    moved += it.subject != next ? 1 : 0;
    next = it.subject + 1;
  }
  return moved;
}

struct Release {
  uint32_t storage = 0;
  Bytes size{0};
  size_t at = 0;
  bool evicted = false;
  std::string back = "never";
};

// Releases, the largest first.
std::vector<Release> releases_of(const SavedSchedule& saved) {
  const Schedule& s = saved.schedule;
  std::vector<Release> found;
  std::vector<size_t> open(saved.trace.storages.size() + s.foreign.size(), SIZE_MAX);
  for (size_t i = 0; i < s.code.size(); ++i) {
    const auto& it = s.code[i];
    if (it.what == Do::kEvict || it.what == Do::kOffload) {
      open[it.subject] = found.size();
      const Bytes size = it.subject < saved.trace.storages.size()
                             ? saved.trace.storages[it.subject].size
                             : s.foreign[it.subject - saved.trace.storages.size()];
      found.push_back({it.subject, size, i, it.what == Do::kEvict});
    }
    for (uint32_t b = it.first_block; b < it.first_block + it.blocks; ++b) {
      const uint32_t storage = s.blocks[b].storage;
      if (storage == Schedule::kScratch || open[storage] == SIZE_MAX) continue;
      found[open[storage]].back =
          fmt::format("{} at {}", it.what == Do::kCopyIn ? "copied in" : "computed", i);
      open[storage] = SIZE_MAX;
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Release& a, const Release& b) { return a.size > b.size; });
  return found;
}

void print_kinds(const Schedule& s) {
  static constexpr std::array kWords{
      "runs",       "uploads",  "reads",     "frees",           "evicts",
      "copies out", "offloads", "copies in", "drops of copies", "moves"};
  std::array<size_t, kWords.size()> counts{};
  size_t again = 0, in_place = 0, variants = 0;
  for (const auto& it : s.code) {
    ++counts[static_cast<size_t>(it.what)];
    again += it.again ? 1 : 0;
    in_place += it.in_place() ? 1 : 0;
    variants += it.variant != 0 ? 1 : 0;
  }
  std::string line;
  for (size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0) continue;
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", counts[k], kWords[k]);
    if (k == 0 && again > 0) line += fmt::format(" ({} of them again)", again);
    if (k == 0 && in_place > 0) line += fmt::format(" ({} in place)", in_place);
    if (k == 0 && variants > 0) line += fmt::format(" ({} as variants)", variants);
  }
  print_out("instructions  {}: {}\n", s.code.size(), line);
}

void print_peak(const SavedSchedule& saved, Bytes room) {
  const Schedule& s = saved.schedule;
  const double above = s.peak_bound > Bytes(0)
                           ? 100.0 * static_cast<double>((s.peak - s.peak_bound).count()) /
                                 static_cast<double>(s.peak_bound.count())
                           : 0;
  const Bytes apart = residents_apart(saved);
  print_out("peak          {}", format_bytes(s.peak));
  if (s.peak_bound > Bytes(0)) {
    print_out(", {} {} ({:.3f} % above it)", releases(s) ? "load" : "bound",
              format_bytes(s.peak_bound), above);
  }
  if (apart > Bytes(0)) {
    print_out("; {} with residents", format_bytes(s.peak + apart));
  }
  print_out("; {} in program order\n", format_bytes(program_order_peak(saved.trace)));
  if (s.shortfall > Bytes(0)) {
    print_out("shortfall     {}, released when it runs\n", format_bytes(s.shortfall));
  }
  if (room > Bytes(0)) {
    const Bytes left = room - s.peak - apart;
    print_out("budget        {}: {} {}\n", format_bytes(room),
              format_bytes(left < Bytes(0) ? Bytes(0) - left : left),
              left < Bytes(0) ? "short" : "to spare");
  }
}

void print_bound(const std::string& name, const Schedule& s) {
  if (s.time_bound > Nanos(0)) {
    print_out(
        "bound         {:.3f} ms for this order, {:.3f} ms for any, in the budget that it was "
        "planned for; {:.3f} ms without a limit\n",
        to_ms(s.time_bound), to_ms(s.any_order_bound), to_ms(s.ample_time));
  } else if (releases(s)) {
    print_out(
        "bound         none known; plan_graph {} --budget SIZE, with or without --tier, "
        "computes one\n",
        name);
  } else {
    print_out(
        "bound         nothing is released: a step takes no longer than without a limit\n");
  }
}

void print_releases(const SavedSchedule& saved) {
  const std::vector<Release> found = releases_of(saved);
  if (found.empty()) return;
  print_out("\n{:>10}  {:<9} {:>8}  {:<18} {}\n", "size", "how", "at", "back", "storage");
  for (size_t i = 0; i < std::min(kShown, found.size()); ++i) {
    const Release& r = found[i];
    print_out("{:>10}  {:<9} {:>8}  {:<18} {} {}\n", format_bytes(r.size),
              r.evicted ? "evicted" : "offloaded", r.at, r.back, r.storage,
              r.storage < saved.trace.storages.size()
                  ? printable(saved.trace.storages[r.storage].label())
                  : "foreign");
  }
  if (found.size() > kShown)
    print_out("{:>10}\n", fmt::format("{} more", found.size() - kShown));
}

}  // namespace

int print_schedule(const std::string& name, const SavedSchedule& saved, PlanLimits limits) {
  const Schedule& s = saved.schedule;
  print_out("{}: {} operators, {} storages; {}{}\n", name, saved.trace.ops.size(),
            saved.trace.storages.size(), s.placed ? "placed" : "not placed",
            s.method.empty() ? "" : ", by " + printable(s.method));
  const size_t moved = out_of_order(s);
  print_out(
      "order         {}\n",
      moved == 0 ? "the program's" : fmt::format("the program's, changed in {} places", moved));
  print_kinds(s);
  print_peak(saved, limits.space);

  const Bytes residents = residents_apart(saved);
  const Bytes needed = s.peak + residents - (s.placed ? Bytes(0) : s.shortfall);
  const Bytes room = limits.space > Bytes(0) ? limits.space : s.peak + residents;
  limits.space = Bytes(int64_t{1} << 61);
  const std::vector<std::string> wrong = schedule_violations(saved.trace, limits, s);
  if (s.time > Nanos(0)) {
    print_out("time          {:.3f} ms expected, {:.3f} ms of it recomputing\n", to_ms(s.time),
              to_ms(s.recomputed));
  }
  print_bound(name, s);
  if (wrong.empty()) {
    PlanLimits beside = limits;  // residents have no blocks for the simulator to count
    beside.space = room - residents;
    const ScheduleCost cost = simulate(saved.trace, beside, s);
    print_out(
        "simulated     {:.3f} ms: {:.3f} recomputing, {:.3f} waiting for uploads and copies; "
        "{:.3f} ms of copies, at --profile's rates; {} on tiers\n",
        to_ms(cost.time), to_ms(cost.recomputed), to_ms(cost.waited), to_ms(cost.copied),
        format_bytes(cost.tier_peak));
    if (s.placed && releases(s)) {
      const Schedule apart = planner::side_by_side(saved.trace, beside, s);
      print_out("own bytes     {:.3f} ms if each block had bytes of its own, which takes {}\n",
                to_ms(apart.time), format_bytes(apart.peak));
    }
  }
  print_releases(saved);
  for (const std::string& line : wrong) print_out("not valid: {}\n", printable(line));
  if (!wrong.empty()) return kFailed;
  if (needed <= room) return kDone;
  print_error("plan_graph: the schedule does not fit in {}; {} bytes ({}) would be enough\n",
              format_bytes(room), needed.count(), format_bytes(needed));
  return kOutOfMemory;
}

}  // namespace tidemark
