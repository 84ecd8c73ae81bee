#include "examples/compare/snapshot_json.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "examples/common/report.h"

namespace tidemark::compare {
namespace {

using Json = nlohmann::ordered_json;

// Microseconds are precise enough, and shorter.
double short_ms(Nanos time) { return std::round(to_ms(time) * 1000) / 1000; }

Json loss_json(const std::optional<float>& loss) {
  return loss && std::isfinite(*loss) ? Json(*loss) : Json(nullptr);
}

Json to_json(const StepStats& s) {
  Json json{{"operators", s.operators}};
  add_decisions(json, s);
  json["ms"] = to_ms(s.duration);
  json["peak_reserved_bytes"] = s.peak_reserved.count();
  json["peak_live_bytes"] = s.peak_live.count();
  return json;
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::kWaiting: return "waiting";
    case Phase::kPreparing: return "preparing";
    case Phase::kStepping: return "stepping";
    case Phase::kPlanning: return "planning";
  }
  return "";
}

Json overhead_json(const std::optional<Overhead>& overhead) {
  if (!overhead) return nullptr;
  return {{"median", overhead->median}, {"low", overhead->low},
          {"high", overhead->high},     {"steps", overhead->steps},
          {"known", overhead->known()}, {"within_noise", overhead->within_noise()},
          {"exact", overhead->exact}};
}

// [[first step, steps, mean ms, mean loss], ...]
Json to_json(const StepSeries& series) {
  Json json = Json::array();
  for (const StepSeries::Point& point : series.points()) {
    const bool has_loss = point.loss && std::isfinite(*point.loss);
    json.push_back({point.first, point.steps, std::round(point.ms * 1000) / 1000,
                    has_loss ? Json(static_cast<float>(*point.loss)) : Json(nullptr)});
  }
  return json;
}

Json lane_json(const Snapshot& now, const LaneView& lane, const LaneStanding& standing) {
  Json json;
  json["id"] = lane.id;
  json["name"] = lane.name();
  json["policy"] = lane.spec.policy;
  json["filter"] = lane.spec.filter;
  json["schedule"] = lane.schedule ? lane.schedule->name() : "";
  json["budget_bytes"] = lane.budget.count();
  json["status"] = to_string(lane.status);
  json["error"] = lane.error;
  json["colour"] = standing.colour;
  json["phase"] = to_string(standing.phase);
  json["pending"] = nullptr;
  if (standing.pending) {
    json["pending"] = {{"policy", standing.pending->policy},
                       {"filter", standing.pending->filter},
                       {"budget_bytes", standing.pending_budget.count()}};
  }
  json["steps_done"] = lane.steps_done;
  json["step_ms"] = lane.step_time ? Json(to_ms(*lane.step_time)) : Json(nullptr);
  json["overhead"] = overhead_json(now.overhead(lane));
  json["loss"] = loss_json(lane.loss);
  json["loss_bits"] = lane.loss ? Json(loss_bits(*lane.loss)) : Json(nullptr);
  json["params_checksum"] = lane.checksum ? Json(*lane.checksum) : Json(nullptr);
  json["peak_reserved_bytes"] = lane.peak_reserved.count();
  json["fragmentation"] = lane.picture.fragmentation;
  json["last"] = to_json(lane.last);
  json["total"] = to_json(lane.total);
  json["series"] = to_json(lane.series);
  json["curve"] = Json::array();
  for (const CurvePoint& point : lane.picture.curve) {
    json["curve"].push_back({short_ms(point.time), point.used.count()});
  }
  return json;
}

}  // namespace

std::string loss_bits(float loss) {
  return fmt::format("{:08x}", std::bit_cast<uint32_t>(loss));
}

std::string_view to_string(LaneStatus status) {
  switch (status) {
    case LaneStatus::kStarting: return "starting";
    case LaneStatus::kRunning: return "running";
    case LaneStatus::kFinished: return "finished";
    case LaneStatus::kFailed: return "failed";
  }
  return "";
}

nlohmann::ordered_json to_json(const Snapshot& now) {
  Json json;
  json["number"] = now.number;
  json["job"] = now.job;
  json["device"] = now.device;
  json["simulated"] = now.simulated;
  json["steps"] = now.steps;
  json["unmanaged_peak_bytes"] = now.unmanaged_peak.count();
  json["minimum_budget_bytes"] = now.minimum.count();
  json["budget_bytes"] = now.budget.count();
  json["reference_ms"] = now.reference ? Json(to_ms(*now.reference)) : Json(nullptr);
  json["reference"] = now.reference_name;
  json["reference_lane"] = now.reference_lane > 0 ? Json(now.reference_lane) : Json(nullptr);
  json["paused"] = now.paused;
  json["finished"] = now.finished;
  json["applied"] = now.applied;
  Json mismatches = Json::array();
  for (const LossMismatch& m : now.mismatches) {
    mismatches.push_back({{"step", m.step},
                          {"lane", m.lane},
                          {"loss_bits", loss_bits(m.loss)},
                          {"other", m.other},
                          {"other_loss_bits", loss_bits(m.other_loss)}});
  }
  json["losses"] = {{"compared", now.losses_compared},
                    {"mismatched", now.losses_mismatched},
                    {"mismatches", std::move(mismatches)}};
  json["notices"] = Json::array();
  for (const Notice& notice : now.notices) {
    json["notices"].push_back(
        {{"command", notice.command}, {"bad", notice.bad}, {"text", notice.text}});
  }
  json["lanes"] = Json::array();
  for (size_t i = 0; i < now.lanes.size(); ++i) {
    json["lanes"].push_back(lane_json(now, *now.lanes[i], now.standings[i]));
  }
  return json;
}

nlohmann::ordered_json to_json(const Decision& d) {
  return {{"ms", short_ms(d.time)},        {"action", to_string(d.kind)},
          {"reason", to_string(d.reason)}, {"operator", d.name},
          {"storage", d.storage},          {"category", to_string(d.category)},
          {"bytes", d.bytes.count()},      {"age_ms", short_ms(d.age)},
          {"cost_ms", short_ms(d.cost)}};
}

nlohmann::ordered_json details_to_json(const Snapshot& now, const LaneView& lane) {
  const StepPicture& picture = lane.picture;
  std::vector<size_t> shown(picture.blocks.size());
  std::iota(shown.begin(), shown.end(), size_t{0});
  if (shown.size() > kBlocksShown) {
    const auto area = [&](size_t i) {
      const PlacedBlock& block = picture.blocks[i];
      return static_cast<double>(block.bytes.count()) *
             static_cast<double>((block.to - block.from).count());
    };
    const auto end = shown.begin() + static_cast<int64_t>(kBlocksShown);
    std::nth_element(shown.begin(), end, shown.end(),
                     [&](size_t a, size_t b) { return area(a) > area(b); });
    shown.resize(kBlocksShown);
    std::sort(shown.begin(), shown.end());
  }
  Json json;
  json["number"] = now.number;
  json["id"] = lane.id;
  json["name"] = lane.name();
  json["step"] = lane.steps_done;
  json["duration_ms"] = short_ms(picture.duration);
  json["capacity_bytes"] = picture.capacity.count();
  json["incomplete"] = picture.incomplete;
  json["blocks_left_out"] = picture.blocks.size() - shown.size();
  json["blocks"] = Json::array();
  for (const size_t i : shown) {
    const PlacedBlock& b = picture.blocks[i];
    json["blocks"].push_back({b.offset.value(), b.bytes.count(), short_ms(b.from),
                              short_ms(b.to), b.name, to_string(b.category),
                              to_string(b.ending), short_ms(b.age), b.storage, b.from_before,
                              to_string(b.reason)});
  }
  json["decisions_made"] = picture.decisions_made;
  json["decisions"] = Json::array();
  for (const Decision& decision : picture.decisions) {
    json["decisions"].push_back(to_json(decision));
  }
  return json;
}

nlohmann::ordered_json to_json(const LaneStep& step) {
  Json json;
  json["step"] = step.step;
  json["name"] = step.name;
  json["budget_bytes"] = step.budget.count();
  json["loss"] = loss_json(step.loss);
  json["loss_bits"] = step.loss ? Json(loss_bits(*step.loss)) : Json(nullptr);
  json.update(to_json(step.stats));
  return json;
}

}  // namespace tidemark::compare
