// The live view in a terminal: draws snapshots and handles keys.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "examples/compare/engine.h"
#include "examples/compare/terminal_view.h"

namespace tidemark::compare {

// Handles keys, without a terminal.
//
// Threads: one.
class Keys {
 public:
  explicit Keys(Comparison& comparison) : comparison_(comparison) {}

  // Handles one character, or one of the keys below. Returns false if the user wants to quit.
  enum : int { kUp = 1000, kDown, kEscape, kEnter, kBackspace };
  bool press(int key);
  const ViewState& state() const { return state_; }
  ViewState& state() { return state_; }

 private:
  enum class Ask : uint8_t { kNothing, kSwitch, kAdd, kBudget, kAllBudgets };
  void ask(Ask what, const std::string& prompt);
  void answer();
  void submit(const Command& command);
  void select_next(int by);

  Comparison& comparison_;
  ViewState state_;
  Ask asking_ = Ask::kNothing;
};

// Runs until `q`, Ctrl-C, `interrupted`, or the end of a comparison that has one. Restores the
// terminal afterwards. Returns true if the user ended it early.
//
// REQUIRES: standard output is a terminal.
bool run_terminal(Comparison& comparison, const std::function<bool()>& interrupted);

}  // namespace tidemark::compare
