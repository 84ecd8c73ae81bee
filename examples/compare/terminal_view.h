// A snapshot as a frame of a terminal: table, curves, decisions, keys. Pure.
#pragma once

#include <string>

#include "examples/compare/canvas.h"
#include "examples/compare/snapshot.h"

namespace tidemark::compare {

struct ViewState {
  int selected = 1;       // lane, by its id
  std::string prompt{};   // a question that is being asked; empty: none
  std::string answer{};   // so far
  std::string message{};  // of the last command that was refused
  bool unicode = true;
};

inline constexpr int kLeastWidth = 40, kLeastHeight = 10;

// Fits any size; below kLeastWidth x kLeastHeight it says that there is not enough room.
Canvas draw_view(const Snapshot& now, const ViewState& state, int width, int height);

}  // namespace tidemark::compare
