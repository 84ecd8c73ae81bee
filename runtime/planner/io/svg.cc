#include "runtime/planner/io/svg.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "runtime/core/svg.h"
#include "runtime/planner/layout/heuristics.h"

namespace tidemark::planner {
namespace {

constexpr double kWidth = 1200, kPlot = 600, kCurve = 160, kMargin = 60;

template <class... Numbers>
std::string format(const char* pattern, Numbers... numbers) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), pattern, numbers...);
  return text.data();
}

std::string label(double x, double y, const std::string& text) {
  return format("<text x=\"%.1f\" y=\"%.1f\">", x, y) + svg_escaped(text) + "</text>\n";
}

}  // namespace

std::string draw_layout(const std::vector<Buffer>& buffers, const Offsets& offsets,
                        const Drawing& drawing) {
  std::map<int64_t, int64_t> change;
  for (const Buffer& b : buffers) {
    if (is_empty(b)) continue;
    change[b.begin] += b.size.count();
    change[b.end] -= b.size.count();
  }
  const int64_t first = change.empty() ? 0 : change.begin()->first;
  const int64_t last = change.empty() ? 1 : change.rbegin()->first;
  const Bytes top = std::max(height(buffers, offsets), Bytes(1));
  const auto x = [&](int64_t t) {
    return kMargin + kWidth * (static_cast<double>(t) - static_cast<double>(first)) /
                         (static_cast<double>(last) - static_cast<double>(first));
  };
  const auto share = [&](int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(top.count());
  };

  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth + 2 * kMargin, kPlot + kCurve + 3 * kMargin);
  svg += label(kMargin, kMargin - 20, drawing.title);
  svg += label(4, kMargin + 10, format_bytes(top));
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    if (is_empty(b)) continue;
    const double high = kPlot * share(b.size.count());
    const double y = kMargin + kPlot * (1 - share((offsets[i] + b.size).value()));
    // Neighbouring numbers get distant hues.
    svg += format(
        "<rect x=\"%.3f\" y=\"%.3f\" width=\"%.3f\" height=\"%.3f\" "
        "fill=\"hsl(%d,55%%,70%%)\" stroke=\"#333\" stroke-width=\"0.3\">",
        x(b.begin), y, x(b.end) - x(b.begin), high, static_cast<int>((i * 137) % 360));
    const std::string name = i < drawing.names.size() ? drawing.names[i] : std::to_string(i);
    svg += "<title>" + svg_escaped(name) + ": " + format_bytes(b.size) + " at " +
           std::to_string(offsets[i].value()) + ", [" + std::to_string(b.begin) + ", " +
           std::to_string(b.end) + ")</title></rect>\n";
  }
  const double line = kMargin + kPlot * (1 - std::min(1.0, share(drawing.bound.count())));
  svg += format(
      "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.3f\" y2=\"%.3f\" stroke=\"#c00\" "
      "stroke-dasharray=\"6 4\"/>\n",
      kMargin, kMargin + kWidth, line, line);

  const double floor = kPlot + kCurve + 2 * kMargin;
  svg += format("<polyline fill=\"#9bd\" stroke=\"#257\" points=\"%.1f,%.1f", kMargin, floor);
  int64_t live = 0;
  for (const auto& [time, by] : change) {
    svg += format(" %.3f,%.3f", x(time), floor - kCurve * share(live));
    live += by;
    svg += format(" %.3f,%.3f", x(time), floor - kCurve * share(live));
  }
  svg += "\"/>\n";
  svg +=
      label(kMargin, floor + 20,
            "bytes live; time from " + std::to_string(first) + " to " + std::to_string(last));
  return svg + "</svg>\n";
}

}  // namespace tidemark::planner
