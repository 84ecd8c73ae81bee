// A grid of characters with colours, for a frame in a terminal. Text is UTF-8, every character
// of it one cell wide. What falls outside is cut off.
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
  // Gives the column after the text.
  int put(int row, int column, std::string_view text, Style style = {});
  // Ends at `column`, which is not part of it.
  void put_right(int row, int column, std::string_view text, Style style = {});

  // Rows without colours, blanks at their ends cut off.
  std::vector<std::string> text() const;
  // Escape sequences that draw it over what is there, from the upper left corner. `colours`
  // off: bold and reverse alone.
  std::string ansi(bool colours) const;

 private:
  struct Cell {
    std::string character = " ";
    Style style;
  };
  int width_, height_;
  std::vector<Cell> cells_;
};

// How many cells `text` takes.
int cells_of(std::string_view text);

// Lines of dots, eight to a cell (Braille), or a letter to a cell where there is no UTF-8.
class DotChart {
 public:
  DotChart(int columns, int rows, bool unicode);

  int dots_across() const { return columns_ * kAcross; }
  int dots_down() const { return rows_ * kDown; }
  // From dot to dot; (0, 0) is the lower left one.
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
