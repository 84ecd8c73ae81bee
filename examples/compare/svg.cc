// Draws reports without a browser: curves above, a map of each lane's arena below.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "examples/compare/report.h"
#include "runtime/core/svg.h"

namespace tidemark::compare {
namespace {

constexpr int kWidth = 960, kLeft = 76, kRight = 20, kCurves = 260, kMap = 170, kGap = 54;
constexpr size_t kBlocksDrawn = 1500;
// Colours that people with any kind of colour vision can tell apart (Okabe and Ito, 2008), and
// two more.
constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                              "#e69f00", "#56b4e9", "#8c6d31", "#6b6b6b"};

// Maps [0, most] to [first, last].
class Scale {
 public:
  Scale(int64_t most, double first, double last)
      : most_(static_cast<double>(std::max<int64_t>(most, 1))), first_(first), last_(last) {}
  double operator()(int64_t value) const {
    return first_ + (last_ - first_) * static_cast<double>(value) / most_;
  }

 private:
  double most_, first_, last_;
};

std::string label(double x, double y, std::string_view text, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more,
                     svg_escaped(text));
}

std::string axes(const Scale& x, const Scale& y, Nanos time, Bytes bytes) {
  constexpr int kTicks = 4;
  std::string text;
  for (int i = 0; i <= kTicks; ++i) {
    const Bytes b = bytes * i;
    const Bytes at(b.count() / kTicks);
    text +=
        fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>\n",
                    kLeft, kWidth - kRight, y(at.count()), y(at.count()));
    text += label(kLeft - 6, y(at.count()) + 4, format_bytes(at), "text-anchor=\"end\"");
    const Nanos t(time.count() * i / kTicks);
    text += label(x(t.count()), y(0) + 16, fmt::format("{:.1f} ms", to_ms(t)),
                  i == kTicks ? "text-anchor=\"end\"" : "text-anchor=\"middle\"");
  }
  return text;
}

std::string curves(const Snapshot& now, double top) {
  Nanos longest{1};
  Bytes most = now.unmanaged_peak;
  for (const auto& lane : now.lanes) {
    longest = std::max(longest, lane->picture.duration);
    for (const CurvePoint& point : lane->picture.curve) most = std::max(most, point.used);
  }
  const Scale x(longest.count(), kLeft, kWidth - kRight);
  const Scale y(most.count(), top + kCurves, top);
  std::string text = axes(x, y, longest, most);
  double legend = kLeft;
  for (size_t i = 0; i < now.lanes.size(); ++i) {
    const LaneView& lane = *now.lanes[i];
    const char* colour = kColours[i % kColours.size()];
    text += fmt::format("<path class=\"curve\" stroke=\"{}\" d=\"", colour);
    for (size_t k = 0; k < lane.picture.curve.size(); ++k) {
      const CurvePoint& point = lane.picture.curve[k];
      // The value holds until the next point.
      text += fmt::format(fmt::runtime(k == 0 ? "M{:.1f},{:.1f}" : "H{:.1f}V{:.1f}"),
                          x(point.time.count()), y(point.used.count()));
    }
    text += fmt::format("\"><title>{}</title></path>\n", svg_escaped(lane.spec.name()));
    const std::string name = fmt::format("{} {}", lane.id, lane.spec.name());
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" "
        "fill=\"{}\"/>\n",
        legend, top - 19, colour);
    text += label(legend + 14, top - 10, name);
    legend += 30 + 7.2 * static_cast<double>(name.size());
  }
  return text;
}

std::string map(const LaneView& lane, double top) {
  const StepPicture& picture = lane.picture;
  const Scale x(picture.duration.count(), kLeft, kWidth - kRight);
  const Scale y(picture.capacity.count(), top + kMap, top);
  std::string text = axes(x, y, picture.duration, picture.capacity);
  std::vector<const PlacedBlock*> blocks;
  for (const PlacedBlock& block : picture.blocks) blocks.push_back(&block);
  if (blocks.size() > kBlocksDrawn) {
    std::nth_element(blocks.begin(), blocks.begin() + kBlocksDrawn, blocks.end(),
                     [](const PlacedBlock* a, const PlacedBlock* b) {
                       return static_cast<double>(a->bytes.count()) *
                                  static_cast<double>((a->to - a->from).count()) >
                              static_cast<double>(b->bytes.count()) *
                                  static_cast<double>((b->to - b->from).count());
                     });
    blocks.resize(kBlocksDrawn);
  }
  for (const PlacedBlock* block : blocks) {
    const double x0 = x(block->from.count()), x1 = x(block->to.count());
    const double y1 = y(block->offset.value());
    const double y0 = y((block->offset + block->bytes).value());
    text += fmt::format(
        "<rect class=\"block\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
        "height=\"{:.2f}\" fill=\"{}\"><title>{}, {}, {}</title></rect>\n",
        x0, y0, std::max(x1 - x0, 0.2), std::max(y1 - y0, 0.2),
        kCategoryColours[static_cast<size_t>(block->category)], svg_escaped(block->name),
        format_bytes(block->bytes), to_string(block->ending));
  }
  return text + label(kLeft, top - 10,
                      fmt::format("{} {}: the arena, offset by time, step {}", lane.id,
                                  lane.spec.name(), lane.steps_done));
}

}  // namespace

std::string to_svg(const Snapshot& now) {
  const double first = 76;
  const double height =
      first + kCurves + kGap + static_cast<double>(now.lanes.size()) * (kMap + kGap + 22);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0} {1:.0f}\">\n"
      "<style>text{{font:12px sans-serif;fill:#333}}.grid{{stroke:#ddd}}"
      ".curve{{fill:none;stroke-width:1.5}}.block{{stroke:#fff;stroke-width:.2}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kWidth, height);
  text += label(kLeft, 24, fmt::format("{}, on {}", now.job, now.device),
                "style=\"font-weight:bold;font-size:14px\"");
  text += label(kLeft, 42, "Bytes in the arena over the last step");
  text += curves(now, first);
  double top = first + kCurves + kGap + 18;
  double legend = kLeft;
  for (size_t i = 0; i < kCategoryCount; ++i) {
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" "
        "fill=\"{}\"/>\n",
        legend, top - 45, kCategoryColours[i]);
    text += label(legend + 14, top - 36, kCategoryNames[i]);
    legend += 40 + 6.5 * static_cast<double>(kCategoryNames[i].size());
  }
  for (const auto& lane : now.lanes) {
    text += map(*lane, top);
    top += kMap + kGap + 22;
  }
  return text + "</svg>\n";
}

}  // namespace tidemark::compare
