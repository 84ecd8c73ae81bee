// Ctrl-C as a request: the first one asks the program to come to an end, the second one ends
// it.
#pragma once

namespace tidemark {

// Takes SIGINT, SIGTERM and SIGHUP over while it lives; one at a time in a process. Any of them
// is the request; after it, another SIGINT or SIGTERM removes partial files and ends the
// process. SIGHUP never does, as a terminal that goes may send several, and stays ignored under
// nohup.
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
