// How much deciding has looked at, and the way to end a step that takes too much of it: for
// simulations, whose time must not depend on the machine's.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>

namespace tidemark {

class Effort {
 public:
  struct Stopped {};

  // Storages, blocks and inputs of recipes that were looked at to decide what to release and
  // what to recompute, and what a planner counts. Where that is many to an operator, the host's
  // time grows with it. The same on every machine.
  int64_t examined() const { return examined_; }
  void examine(int64_t more = 1) const { examined_ += more; }

  // Stopped is thrown as soon as another block is wanted, another call is issued or the step
  // ends, whatever comes first.
  void stop() { stopped_ = true; }
  void go_on() { stopped_ = false; }
  void stop_here() const {
    if (stopped_) throw Stopped();
  }

 private:
  mutable int64_t examined_ = 0;
  bool stopped_ = false;
};

}  // namespace tidemark
