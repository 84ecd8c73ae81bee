#include "examples/compare/terminal_view.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <functional>

#include "examples/compare/snapshot_json.h"

namespace tidemark::compare {
namespace {

constexpr Style kTitle{.bold = true}, kQuiet{.dim = true};
constexpr Style kGood{.colour = 35}, kBad{.colour = 196, .bold = true, .reverse = true};
constexpr std::array<uint8_t, 8> kLaneColours{33, 208, 35, 205, 220, 81, 137, 246};

Style style_of(const LaneStanding& lane) {
  return {.colour = kLaneColours[static_cast<size_t>(lane.colour) % kLaneColours.size()]};
}
char letter_of(const LaneView& lane) { return static_cast<char>('0' + lane.id % 10); }

// Shown instead of the step's time while something takes longer than a step.
std::string under_way(const LaneStanding& lane) {
  if (lane.phase == Phase::kPreparing) return "preparing";
  if (lane.phase == Phase::kPlanning) return "planning";
  return lane.pending ? "pending" : "";
}

struct Column {
  const char* title;
  int width;
  std::function<std::string(const Snapshot&, const LaneView&)> text;
};

// The most important first: columns that do not fit are left out from the right.
const std::vector<Column>& columns() {
  static const std::vector<Column> all{
      {"budget", 11, [](const auto&, const LaneView& l) { return format_bytes(l.budget); }},
      {"step", 11,
       [](const auto&, const LaneView& l) {
         return l.step_time ? fmt::format("{:.1f} ms", to_ms(*l.step_time)) : "-";
       }},
      {"overhead", 14,
       [](const Snapshot& now, const LaneView& l) {
         return now.overhead_text(l, /*with_spread=*/false);
       }},
      {"steps", 7,
       [](const auto&, const LaneView& l) { return fmt::format("{}", l.steps_done); }},
      {"loss", 9,
       [](const auto&, const LaneView& l) {
         return l.loss ? fmt::format("{:.4f}", *l.loss) : "-";
       }},
      {"evicted", 9,
       [](const auto&, const LaneView& l) { return fmt::format("{}", l.last.evictions); }},
      {"again", 7,
       [](const auto&, const LaneView& l) { return fmt::format("{}", l.last.recomputes); }},
      {"copied out", 12,
       [](const auto&, const LaneView& l) { return format_bytes(l.last.offload_bytes); }},
      {"back", 11,
       [](const auto&, const LaneView& l) { return format_bytes(l.last.reload_bytes); }},
      {"waited", 10,
       [](const auto&, const LaneView& l) {
         return fmt::format("{:.1f} ms", to_ms(l.last.stall_time));
       }},
      {"holes", 7,
       [](const auto&, const LaneView& l) {
         return fmt::format("{:.0f}%", 100 * l.picture.fragmentation);
       }},
      {"bits", 10,
       [](const auto&, const LaneView& l) { return l.loss ? loss_bits(*l.loss) : "-"; }},
      {"peak", 11,
       [](const auto&, const LaneView& l) { return format_bytes(l.peak_reserved); }},
  };
  return all;
}

constexpr int kNameWidth = 19;

void draw_head(Canvas& canvas, const Snapshot& now) {
  std::string progress = now.finished ? "finished" : now.paused ? "paused" : "";
  canvas.put(0, 0, fmt::format("{}, on {}", now.job, now.device), kTitle);
  if (!progress.empty()) {
    canvas.put_right(0, canvas.width(), " " + progress + " ", {.bold = true, .reverse = true});
  }
  int column =
      canvas.put(1, 0,
                 fmt::format("without a budget {}, at least {}   ",
                             format_bytes(now.unmanaged_peak), format_bytes(now.minimum)),
                 kQuiet);
  if (now.losses_mismatched > 0) {
    canvas.put(
        1, 0,
        fmt::format(" LOSSES DIFFER: {} of {} comparisons, first at step {} ",
                    now.losses_mismatched, now.losses_compared, now.mismatches.front().step),
        kBad);
  } else if (now.simulated) {
    canvas.put(1, column, "simulated: no losses", kQuiet);
  } else if (now.losses_compared > 0) {
    canvas.put(1, column,
               fmt::format("losses equal to the bit ({} comparisons)", now.losses_compared),
               kGood);
  }
}

void draw_table(Canvas& canvas, int row, const Snapshot& now, const ViewState& state) {
  canvas.put(row, 1, "lane", kQuiet);
  int column = kNameWidth;
  std::vector<const Column*> shown;
  for (const Column& c : columns()) {
    if (column + c.width > canvas.width()) break;
    column += c.width;
    canvas.put_right(row, column, c.title, kQuiet);
    shown.push_back(&c);
  }
  for (size_t i = 0; i < now.lanes.size(); ++i) {
    const LaneView& lane = *now.lanes[i];
    const bool selected = lane.id == state.selected;
    const int at = row + 1 + static_cast<int>(i);
    Style style = style_of(now.standings[i]);
    style.bold = selected;
    canvas.put(at, 0, selected ? ">" : " ", kTitle);
    canvas.put(at, 1, fmt::format("{} {}", lane.id, lane.name()).substr(0, kNameWidth - 2),
               style);
    if (!lane.error.empty()) {
      canvas.put(at, kNameWidth, "failed: " + lane.error.substr(0, lane.error.find('\n')),
                 kBad);
      continue;
    }
    int end = kNameWidth;
    const std::string doing = under_way(now.standings[i]);
    for (const Column* c : shown) {
      end += c->width;
      const bool says_doing = !doing.empty() && std::string_view(c->title) == "step";
      canvas.put_right(at, end, says_doing ? doing : c->text(now, lane),
                       {.bold = selected, .dim = says_doing});
    }
  }
}

void draw_curves(Canvas& canvas, int row, int rows, const Snapshot& now, bool unicode) {
  constexpr int kLabel = 11;
  canvas.put(row, 0, "bytes in the arena over the last step", kQuiet);
  const int first = row + 1, chart_rows = rows - 2;
  if (chart_rows < 2) return;
  Nanos longest{1};
  Bytes most{1};
  for (const auto& lane : now.lanes) {
    longest = std::max(longest, lane->picture.duration);
    for (const CurvePoint& point : lane->picture.curve) most = std::max(most, point.used);
  }
  DotChart chart(canvas.width() - kLabel - 1, chart_rows, unicode);
  const auto x = [&](Nanos time) {
    return static_cast<int>(static_cast<double>(time.count()) /
                            static_cast<double>(longest.count()) * (chart.dots_across() - 1));
  };
  const auto y = [&](Bytes bytes) {
    return static_cast<int>(static_cast<double>(bytes.count()) /
                            static_cast<double>(most.count()) * (chart.dots_down() - 1));
  };
  for (size_t i = 0; i < now.lanes.size(); ++i) {
    const std::vector<CurvePoint>& curve = now.lanes[i]->picture.curve;
    for (size_t k = 1; k < curve.size(); ++k) {
      const int left = x(curve[k - 1].time), right = x(curve[k].time);
      const int before = y(curve[k - 1].used), after = y(curve[k].used);
      const char letter = letter_of(*now.lanes[i]);
      chart.line(left, before, right, before, letter, style_of(now.standings[i]));
      chart.line(right, before, right, after, letter, style_of(now.standings[i]));
    }
  }
  const std::string bar = unicode ? "\u2502" : "|";
  for (int r = 0; r < chart_rows; ++r) canvas.put(first + r, kLabel - 1, bar, kQuiet);
  chart.draw(canvas, first, kLabel);
  canvas.put_right(first, kLabel - 2, format_bytes(most), kQuiet);
  canvas.put_right(first + chart_rows / 2, kLabel - 2, format_bytes(Bytes(most.count() / 2)),
                   kQuiet);
  canvas.put_right(first + chart_rows - 1, kLabel - 2, "0", kQuiet);
  canvas.put(first + chart_rows, kLabel - 1, "0", kQuiet);
  canvas.put_right(first + chart_rows, canvas.width(), fmt::format("{:.1f} ms", to_ms(longest)),
                   kQuiet);
}

void draw_decisions(Canvas& canvas, int row, int rows, const LaneView& lane) {
  const StepPicture& picture = lane.picture;
  canvas.put(
      row, 0,
      fmt::format("lane {}: {} releases in the last step{}", lane.id, picture.decisions_made,
                  picture.decisions_made > 0 ? "; the last" : ""),
      kQuiet);
  const int shown = std::min<int>(rows - 1, static_cast<int>(picture.decisions.size()));
  for (int i = 0; i < shown; ++i) {
    const Decision& d =
        picture.decisions[picture.decisions.size() - static_cast<size_t>(shown - i)];
    canvas.put(
        row + 1 + i, 1,
        fmt::format("{:>9.2f} ms  {:<12}{:<24.24}{:>11}  idle {:>8.2f} ms  costs {:>7.3f} "
                    "ms  {}",
                    to_ms(d.time), to_string(d.kind), d.name, format_bytes(d.bytes),
                    to_ms(d.age), to_ms(d.cost), to_string(d.reason)));
  }
}

void draw_foot(Canvas& canvas, const Snapshot& now, const ViewState& state) {
  const int last = canvas.height() - 1;
  if (!state.message.empty()) {
    canvas.put(last - 1, 0, state.message, kBad);
  } else if (!now.notices.empty()) {
    const Notice& notice = now.notices.back();
    canvas.put(last - 1, 0, notice.text, notice.bad ? kBad : kQuiet);
  }
  if (!state.prompt.empty()) {
    const int column = canvas.put(last, 0, state.prompt + " ", kTitle);
    canvas.put(last, column, state.answer + (state.unicode ? "\u2588" : "_"));
    return;
  }
  canvas.put(
      last, 0,
      "1-9 lane  s switch  a add  d remove  b budget  B all budgets  space pause  q quit",
      {.reverse = true});
}

}  // namespace

Canvas draw_view(const Snapshot& now, const ViewState& state, int width, int height) {
  Canvas canvas(width, height);
  if (width < kLeastWidth || height < kLeastHeight) {
    canvas.put(0, 0, "the window is too small");
    return canvas;
  }
  draw_head(canvas, now);
  draw_table(canvas, 3, now, state);
  const int used = 4 + static_cast<int>(now.lanes.size());
  const int left = height - used - 3;  // a blank line above, two of the foot below
  const int decisions = left >= 12 ? std::clamp(left / 3, 4, 14) : 0;
  if (left - decisions >= 4) {
    draw_curves(canvas, used + 1, left - decisions, now, state.unicode);
  }
  const auto selected = std::find_if(now.lanes.begin(), now.lanes.end(), [&](const auto& lane) {
    return lane->id == state.selected;
  });
  if (decisions > 0 && selected != now.lanes.end()) {
    draw_decisions(canvas, used + 1 + left - decisions, decisions, **selected);
  }
  draw_foot(canvas, now, state);
  return canvas;
}

}  // namespace tidemark::compare
