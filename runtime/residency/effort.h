// Counts the objects examined by decisions, and stops a step that examines too many: for
// simulations, whose limit must not depend on the machine's speed.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>

namespace tidemark {

class Effort {
 public:
  struct Stopped {};

  // Storages, blocks and recipe inputs examined to decide what to release and what to
  // recompute, plus the planner's count. The host's time grows with this number. It is the same
  // on every machine.
  int64_t examined() const { return examined_; }
  void examine(int64_t more = 1) const { examined_ += more; }

  // Throws Stopped at the next request for a block, the next call issued or the end of the
  // step, whichever comes first.
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
