#include "runtime/schedule/schedule_svg.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "runtime/core/svg.h"

namespace tidemark {
namespace {

using Do = Schedule::Do;
using Block = Schedule::Block;
using Instruction = Schedule::Instruction;

constexpr double kLeft = 90, kRight = 20, kTop = 70, kPlot = 560, kWidth = 1200, kRow = 18;

// A mark below the plot, and the frame of a block that such an instruction takes.
struct Mark {
  const char* name;
  const char* colour;
};
constexpr std::array<Mark, 6> kMarks{{{"run again", "#d62728"},
                                      {"evict", "#e377c2"},
                                      {"copy out", "#17577e"},
                                      {"copy in", "#17becf"},
                                      {"move", "#8c6d31"},
                                      {"read", "#333333"}}};
constexpr size_t kNoMark = kMarks.size();

size_t mark_of(const Instruction& it) {
  switch (it.what) {
    case Do::kRun: return it.again ? 0 : kNoMark;
    case Do::kEvict:
    case Do::kDropCopy: return 1;
    case Do::kCopyOut:
    case Do::kOffload: return 2;
    case Do::kCopyIn: return 3;
    case Do::kMove: return 4;
    case Do::kRead: return 5;
    default: return kNoMark;
  }
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string label(double x, double y, const std::string& text, const char* more = "") {
  return format("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, more) + svg_escaped(text) +
         "</text>\n";
}

std::string titled(const std::string& shape, const std::string& title) {
  return shape + "><title>" + svg_escaped(title) + "</title></rect>\n";
}

class Picture {
 public:
  Picture(const StepTrace& trace, const Schedule& schedule) : trace_(trace), s_(schedule) {
    for (const Block& block : s_.blocks) {
      top_ = std::max(top_, (block.at + block.size).value());
    }
    taken_by_.assign(s_.blocks.size(), nullptr);
    for (const Instruction& it : s_.code) {
      for (uint32_t i = 0; i < it.blocks; ++i) taken_by_[it.first_block + i] = &it;
    }
    for (const Instruction& it : s_.code) {
      const size_t mark = mark_of(it);
      if (mark != kNoMark) marked_[mark] = true;
    }
  }

  std::string run(const std::string& title) {
    const double rows = static_cast<double>(std::count(marked_.begin(), marked_.end(), true));
    svg_ = format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
        "font-family=\"sans-serif\" font-size=\"13\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        kLeft + kWidth + kRight, kTop + kPlot + rows * kRow + 40);
    svg_ += label(kLeft, 22, title, "font-size=\"16\"");
    legend();
    axes();
    for (size_t b = 0; b < s_.blocks.size(); ++b) draw(b);
    if (s_.peak_bound > Bytes(0)) {
      svg_ += line(y(s_.peak_bound.count()), "#c00", "6 4");
    }
    taken_bytes();
    marks();
    return svg_ + "</svg>\n";
  }

 private:
  double x(size_t instruction) const {
    const double most = static_cast<double>(std::max<size_t>(s_.code.size(), 1));
    return kLeft + kWidth * static_cast<double>(instruction) / most;
  }
  double y(int64_t at) const {
    return kTop + kPlot * (1 - static_cast<double>(at) / static_cast<double>(top_));
  }
  static std::string line(double y, const char* colour, const char* dashes) {
    return format(
        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" "
        "stroke-dasharray=\"%s\"/>\n",
        kLeft, kLeft + kWidth, y, y, colour, dashes);
  }
  Category category(uint32_t storage) const {
    if (storage == Schedule::kScratch) return Category::kWorkspace;
    // All that is known of a foreign storage is that it stays.
    return storage < trace_.storages.size() ? trace_.storages[storage].category
                                            : Category::kParameter;
  }
  std::string name(uint32_t storage) const {
    if (storage == Schedule::kScratch) return "scratch";
    return "s" + std::to_string(storage) + " " +
           (storage < trace_.storages.size() ? std::string(trace_.storages[storage].label())
                                             : "foreign");
  }
  std::string describe(const Instruction& it) const {
    static constexpr std::array kWords{"run",      "upload",  "read",    "free",      "evict",
                                       "copy out", "offload", "copy in", "drop copy", "move"};
    return std::string(kWords[static_cast<size_t>(it.what)]) + " " +
           (names_op(it) ? "op " + std::to_string(it.subject) + " " +
                               std::string(trace_.ops[it.subject].label())
                         : name(it.subject)) +
           (it.again ? " again" : "") +
           (it.in_place() ? ", in place of " + name(it.overwrites) : "");
  }

  void legend() {
    double at = kLeft;
    const auto entry = [&](const std::string& text, const char* fill, const char* stroke) {
      svg_ += format(
          "<rect x=\"%.1f\" y=\"36\" width=\"14\" height=\"14\" fill=\"%s\" stroke=\"%s\" "
          "stroke-width=\"2\"/>\n",
          at, fill, stroke);
      svg_ += label(at + 19, 48, text);
      at += 34 + 7.2 * static_cast<double>(text.size());
    };
    std::array<bool, kCategoryCount> there{};
    for (const Block& block : s_.blocks)
      there[static_cast<size_t>(category(block.storage))] = true;
    for (size_t c = 0; c < kCategoryCount; ++c) {
      if (there[c]) entry(std::string(kCategoryNames[c]), kCategoryColours[c], "none");
    }
    for (const size_t m : {size_t{0}, size_t{3}, size_t{4}}) {
      if (marked_[m]) entry(kMarks[m].name, "white", kMarks[m].colour);
    }
  }

  void axes() {
    constexpr int64_t kTicks = 4;
    for (int64_t i = 0; i <= kTicks; ++i) {
      const int64_t bytes = top_ * i / kTicks;
      svg_ += line(y(bytes), "#ddd", "none");
      svg_ += label(kLeft - 8, y(bytes) + 4, format_bytes(Bytes(bytes)), "text-anchor=\"end\"");
    }
  }

  void draw(size_t b) {
    const Block& block = s_.blocks[b];
    if (block.size == Bytes(0) || block.begin >= block.end) return;
    const Instruction* by = taken_by_[b];
    const size_t mark = by ? mark_of(*by) : kNoMark;
    svg_ += titled(
        format(
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" "
            "fill-opacity=\"0.8\" stroke=\"%s\" stroke-width=\"%s\"",
            x(block.begin), y((block.at + block.size).value()), x(block.end) - x(block.begin),
            y(block.at.value()) - y((block.at + block.size).value()),
            kCategoryColours[static_cast<size_t>(category(block.storage))],
            mark == kNoMark ? "white" : kMarks[mark].colour, mark == kNoMark ? "0.4" : "1.4"),
        name(block.storage) + ": " + format_bytes(block.size) + " at " +
            std::to_string(block.at.value()) + ", [" + std::to_string(block.begin) + ", " +
            std::to_string(block.end) + ")" +
            (by ? ", by " + describe(*by) : ", from the start"));
  }

  // Bytes taken at each time, regardless of their places.
  void taken_bytes() {
    std::vector<int64_t> change(s_.code.size() + 2);
    for (const Block& block : s_.blocks) {
      change[block.begin] += block.size.count();
      change[block.end] -= block.size.count();
    }
    svg_ += "<polyline fill=\"none\" stroke=\"#111\" stroke-width=\"1.2\" points=\"";
    int64_t live = 0;
    for (size_t i = 0; i < s_.code.size(); ++i) {
      live += change[i];
      svg_ += format("%.2f,%.2f %.2f,%.2f ", x(i), y(live), x(i + 1), y(live));
    }
    svg_ += "\"/>\n";
  }

  void marks() {
    double row = kTop + kPlot + 10;
    for (size_t m = 0; m < kMarks.size(); ++m) {
      if (!marked_[m]) continue;
      svg_ +=
          label(kLeft - 8, row + 12, kMarks[m].name, "text-anchor=\"end\" font-size=\"12\"");
      for (size_t i = 0; i < s_.code.size(); ++i) {
        if (mark_of(s_.code[i]) != m) continue;
        svg_ += titled(
            format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                   "fill=\"%s\"",
                   x(i), row + 2, std::max(1.5, x(i + 1) - x(i)), kRow - 4, kMarks[m].colour),
            std::to_string(i) + ": " + describe(s_.code[i]));
      }
      row += kRow;
    }
    svg_ += label(kLeft, row + 18,
                  "instructions 0 to " + std::to_string(s_.code.size()) +
                      "; line: bytes taken at once" +
                      (s_.peak_bound == Bytes(0) ? ""
                       : releases(s_)            ? "; dashes: most bytes taken at once"
                                                 : "; dashes: bound of the peak"));
  }

  const StepTrace& trace_;
  const Schedule& s_;
  int64_t top_ = 1;
  std::vector<const Instruction*> taken_by_;  // by block; null: it is there from the start
  std::array<bool, kMarks.size()> marked_{};
  std::string svg_;
};

}  // namespace

std::string draw_schedule(const StepTrace& trace, const Schedule& schedule,
                          const std::string& title) {
  return Picture(trace, schedule).run(title);
}

}  // namespace tidemark
