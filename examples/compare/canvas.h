// A grid of coloured characters, for one frame in a terminal. Text is UTF-8; each character
// occupies one cell. Anything outside the grid is clipped.
//
// Values, no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::compare {

struct Style {
  uint8_t colour = 0;  // of 256; 0: the terminal's own
  bool bold = false, dim = false, reverse = false;
  bool operator==(const Style&) const = default;
};

class Canvas {
 public:
  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  // Returns the column after the text.
  int put(int row, int column, std::string_view text, Style style = {});
  // Right-aligned: the text ends before `column`.
  void put_right(int row, int column, std::string_view text, Style style = {});

  // The rows without colours and trailing blanks.
  std::vector<std::string> text() const;
  // Escape sequences that draw the canvas from the upper left corner, over the current screen.
  // Without `colours`, only bold and reverse are used.
  std::string ansi(bool colours) const;

 private:
  struct Cell {
    std::string character = " ";
    Style style;
  };
  int width_, height_;
  std::vector<Cell> cells_;
};

// Number of cells that `text` occupies.
int cells_of(std::string_view text);

// Line charts of dots, eight per cell (Braille), or one letter per cell without UTF-8.
class DotChart {
 public:
  DotChart(int columns, int rows, bool unicode);

  int dots_across() const { return columns_ * kAcross; }
  int dots_down() const { return rows_ * kDown; }
  // Draws from dot to dot; (0, 0) is the lower left dot.
  void line(int x0, int y0, int x1, int y1, char letter, Style style);
  void draw(Canvas& canvas, int row, int column) const;

 private:
  static constexpr int kAcross = 2, kDown = 4;
  struct Cell {
    uint8_t dots = 0;
    char letter = ' ';
    Style style;
  };
  void dot(int x, int y, char letter, Style style);

  int columns_, rows_;
  bool unicode_;
  std::vector<Cell> cells_;
};

}  // namespace tidemark::compare
