// Draws a snapshot as a frame for the terminal: table, curves, decisions, keys. Pure functions.
#pragma once

#include <string>

#include "examples/compare/canvas.h"
#include "examples/compare/snapshot.h"

namespace tidemark::compare {

struct ViewState {
  int selected = 1;       // id of the lane
  std::string prompt{};   // the question being asked; empty: none
  std::string answer{};   // typed so far
  std::string message{};  // for the last rejected command
  bool unicode = true;
};

inline constexpr int kLeastWidth = 40, kLeastHeight = 10;

// Fits any size; below kLeastWidth x kLeastHeight, it only says that the space is too small.
Canvas draw_view(const Snapshot& now, const ViewState& state, int width, int height);

}  // namespace tidemark::compare
