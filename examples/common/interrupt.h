// Ctrl-C as a request: the first one asks the program to come to an end, the second one ends
// it.
#pragma once

namespace tidemark {

// Takes SIGINT and SIGTERM over while it lives; one at a time in a process.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool requested() const;
};

inline constexpr int kInterruptedExitCode = 130;

}  // namespace tidemark
