#include "examples/compare/report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>

#include "examples/common/run.h"
#include "examples/compare/snapshot_json.h"

namespace tidemark::compare {
namespace {

std::string ms(const std::optional<Nanos>& time) {
  return time ? fmt::format("{:.1f} ms", to_ms(*time)) : "-";
}

}  // namespace

std::string closing_table(const Snapshot& now) {
  std::string text =
      fmt::format("\n  {}, on {}\n  without a budget {}, at least {}\n\n", now.job, now.device,
                  format_bytes(now.unmanaged_peak), format_bytes(now.minimum));
  text +=
      fmt::format("  {:<5}{:<14}{:>11}{:>7}{:>12}  {:<34}{:>7}{:>11}{:>12}{:>11}{:>7}  {}\n",
                  "lane", "policy", "budget", "steps", "step", "overhead", "evicted",
                  "recomputed", "copied out", "waited", "holes", "loss");
  for (const auto& view : now.lanes) {
    const LaneView& lane = *view;
    const std::string loss =
        lane.loss ? fmt::format("{:.6f} {}", *lane.loss, loss_bits(*lane.loss)) : "-";
    text += fmt::format(
        "  {:<5}{:<14}{:>11}{:>7}{:>12}  {:<34}{:>7}{:>11}{:>12}{:>8.1f} ms{:>5.0f} %  {}\n",
        lane.id, lane.name(), format_bytes(lane.budget), lane.steps_done, ms(lane.step_time),
        now.overhead_text(lane, /*with_spread=*/true), lane.last.evictions,
        lane.last.recomputes, format_bytes(lane.last.offload_bytes),
        to_ms(lane.last.stall_time), 100 * lane.picture.fragmentation, loss);
    if (!lane.error.empty()) text += "       failed: " + lane.error + "\n";
  }
  text +=
      "\n  Evictions, recomputation, copies, waiting and holes (the share of unused bytes\n"
      "  outside the largest hole) are of the last step; the step time is the median of the\n"
      "  last few.\n";
  if (now.reference) {
    text += fmt::format("  Overhead: relative to {}, {}{}.\n", ms(now.reference),
                        now.reference_name,
                        now.simulated ? ""
                                      : "; the median of steps compared in pairs, and in "
                                        "brackets\n  its 95 % confidence interval");
  }
  if (now.simulated) {
    text += "  The simulator has no values, so there are no losses to compare.\n";
  } else if (now.losses_mismatched > 0) {
    text += fmt::format("\n  LOSSES DIFFER: {} of {} comparisons.\n", now.losses_mismatched,
                        now.losses_compared);
    for (const LossMismatch& m : now.mismatches) {
      text += fmt::format("    step {}: {} has {} ({:.9g}), {} has {} ({:.9g})\n", m.step,
                          m.lane, loss_bits(m.loss), m.loss, m.other, loss_bits(m.other_loss),
                          m.other_loss);
    }
  } else {
    text += fmt::format("  Losses at the same step are equal to the bit ({} comparisons).\n",
                        now.losses_compared);
  }
  return text;
}

std::string round_line(const Snapshot& now) {
  int64_t slowest = std::numeric_limits<int64_t>::max();
  for (const auto& lane : now.lanes) {
    if (lane->status != LaneStatus::kFailed) slowest = std::min(slowest, lane->steps_done);
  }
  std::string text = fmt::format("step {:<5}", slowest);
  for (const auto& view : now.lanes) {
    const LaneView& lane = *view;
    text += fmt::format(" | {} {}", lane.id, lane.name());
    if (lane.status == LaneStatus::kFailed) {
      text += " failed";
      continue;
    }
    text += fmt::format(" {:.1f} ms", to_ms(lane.last.duration));
    const int64_t released = lane.last.evictions + lane.last.offloads + lane.last.clean_drops;
    if (released > 0) text += fmt::format(" {} released", released);
  }
  if (!now.lanes.empty() && now.lanes.front()->loss) {
    text += fmt::format(" | loss {:.4f}{}", *now.lanes.front()->loss,
                        now.losses_mismatched > 0 ? " LOSSES DIFFER" : "");
  }
  return text;
}

std::string to_json_text(const Snapshot& now, History& history) {
  nlohmann::ordered_json json;
  json["program"] = "compare_heuristics";
  json.update(to_json(now));
  for (size_t i = 0; i < now.lanes.size(); ++i) {
    const nlohmann::ordered_json details = details_to_json(now, *now.lanes[i]);
    for (const char* key : {"duration_ms", "incomplete", "blocks_left_out", "blocks",
                            "decisions_made", "decisions"}) {
      json["lanes"][i][key] = details[key];
    }
  }
  json["history"] = nlohmann::ordered_json::array();
  for (const auto& [id, lane] : history.lanes()) {
    nlohmann::ordered_json entry;
    entry["id"] = id;
    entry["steps_left_out"] = lane.left_out;
    entry["steps"] = nlohmann::ordered_json::array();
    for (const LaneStep& step : lane.steps) entry["steps"].push_back(to_json(step));
    json["history"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

std::string to_csv(History& history) {
  std::string text =
      "lane,policy,budget_bytes,step,ms,loss,loss_bits,peak_reserved_bytes,peak_live_bytes,"
      "evictions,evicted_bytes,recomputes,recompute_ms,offloads,offload_bytes,reloads,"
      "reload_bytes,prefetches,clean_drops,compactions,stall_ms\n";
  for (const auto& [id, lane] : history.lanes()) {
    for (const LaneStep& step : lane.steps) {
      const StepStats& s = step.stats;
      text += fmt::format(
          "{},{},{},{},{:.6f},{},{},{},{},{},{},{},{:.6f},{},{},{},{},{},{},{},"
          "{:.6f}\n",
          id, step.name, step.budget.count(), step.step, to_ms(s.duration),
          step.loss ? fmt::format("{:.9g}", *step.loss) : "",
          step.loss ? loss_bits(*step.loss) : "", s.peak_reserved.count(), s.peak_live.count(),
          s.evictions, s.evicted_bytes.count(), s.recomputes, to_ms(s.recompute_time),
          s.offloads, s.offload_bytes.count(), s.reloads, s.reload_bytes.count(), s.prefetches,
          s.clean_drops, s.compactions, to_ms(s.stall_time));
    }
  }
  return text;
}

int exit_code_of(const Snapshot& now) {
  if (now.losses_mismatched > 0) return kFailed;
  int code = kDone;
  for (const auto& lane : now.lanes) {
    if (lane->status != LaneStatus::kFailed) continue;
    if (lane->out_of_memory) return kOutOfMemory;
    code = kFailed;
  }
  return code;
}

}  // namespace tidemark::compare
