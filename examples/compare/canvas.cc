#include "examples/compare/canvas.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tidemark::compare {
namespace {

// The number of bytes of the UTF-8 character that begins with `first`.
size_t length_of(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

size_t index_of(int row, int column, int width) {
  return static_cast<size_t>(row) * static_cast<size_t>(width) + static_cast<size_t>(column);
}

}  // namespace

int cells_of(std::string_view text) {
  int cells = 0;
  for (size_t i = 0; i < text.size(); i += length_of(text[i])) ++cells;
  return cells;
}

Canvas::Canvas(int width, int height)
    : width_(std::max(width, 1)),
      height_(std::max(height, 1)),
      cells_(static_cast<size_t>(width_) * static_cast<size_t>(height_)) {}

int Canvas::put(int row, int column, std::string_view text, Style style) {
  for (size_t i = 0; i < text.size(); ++column) {
    const size_t length = std::min(length_of(text[i]), text.size() - i);
    if (row >= 0 && row < height_ && column >= 0 && column < width_) {
      const auto at = index_of(row, column, width_);
      const bool control = static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7F;
      cells_[at] = {control ? " " : std::string(text.substr(i, length)), style};
    }
    i += length;
  }
  return column;
}

void Canvas::put_right(int row, int column, std::string_view text, Style style) {
  put(row, column - cells_of(text), text, style);
}

std::vector<std::string> Canvas::text() const {
  std::vector<std::string> rows;
  for (int row = 0; row < height_; ++row) {
    std::string line;
    for (int column = 0; column < width_; ++column) {
      line += cells_[index_of(row, column, width_)].character;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    rows.push_back(std::move(line));
  }
  return rows;
}

std::string Canvas::ansi(bool colours) const {
  std::string out = "\x1b[H";
  Style now;
  for (int row = 0; row < height_; ++row) {
    if (row > 0) out += "\r\n";
    for (int column = 0; column < width_; ++column) {
      const Cell& cell = cells_[index_of(row, column, width_)];
      if (!(cell.style == now)) {
        now = cell.style;
        out += "\x1b[0";
        if (now.bold) out += ";1";
        if (now.dim) out += ";2";
        if (now.reverse) out += ";7";
        if (now.colour != 0 && colours) out += fmt::format(";38;5;{}", now.colour);
        out += 'm';
      }
      out += cell.character;
    }
    if (!(now == Style{})) out += "\x1b[0m";
    now = {};
  }
  return out;
}

DotChart::DotChart(int columns, int rows, bool unicode)
    : columns_(std::max(columns, 1)),
      rows_(std::max(rows, 1)),
      unicode_(unicode),
      cells_(static_cast<size_t>(columns_) * static_cast<size_t>(rows_)) {}

void DotChart::dot(int x, int y, char letter, Style style) {
  if (x < 0 || y < 0 || x >= dots_across() || y >= dots_down()) return;
  // Bits of a Braille cell, upper row first: left column 1 2 3 7, right column 4 5 6 8.
  constexpr uint8_t kBits[kDown][kAcross] = {
      {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  const int down = dots_down() - 1 - y;
  Cell& cell = cells_[index_of(down / kDown, x / kAcross, columns_)];
  cell.dots |= kBits[down % kDown][x % kAcross];
  cell.letter = letter;
  cell.style = style;
}

void DotChart::line(int x0, int y0, int x1, int y1, char letter, Style style) {
  const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
  for (int i = 0; i <= steps; ++i) {
    const double t = static_cast<double>(i) / steps;
    dot(static_cast<int>(std::lround(x0 + t * (x1 - x0))),
        static_cast<int>(std::lround(y0 + t * (y1 - y0))), letter, style);
  }
}

void DotChart::draw(Canvas& canvas, int row, int column) const {
  for (int r = 0; r < rows_; ++r) {
    for (int c = 0; c < columns_; ++c) {
      const Cell& cell = cells_[index_of(r, c, columns_)];
      if (cell.dots == 0) continue;
      // U+2800 plus the dots, in UTF-8.
      const char braille[] = {'\xE2', static_cast<char>(0xA0 | (cell.dots >> 6)),
                              static_cast<char>(0x80 | (cell.dots & 0x3F))};
      canvas.put(row + r, column + c,
                 unicode_ ? std::string_view(braille, sizeof(braille))
                          : std::string_view(&cell.letter, 1),
                 cell.style);
    }
  }
}

}  // namespace tidemark::compare
