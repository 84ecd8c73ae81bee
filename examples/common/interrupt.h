// Handles Ctrl-C as a request: the first asks the program to finish, the second ends it.
#pragma once

namespace tidemark {

// Handles SIGINT, SIGTERM and SIGHUP during its lifetime; at most one per process at a time.
// Any of these signals is the request. After the request, another SIGINT or SIGTERM removes
// partial files and ends the process. SIGHUP never ends it, because a closing terminal may send
// several; under nohup it stays ignored.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool requested() const;
};

// The same for code that does not have the scope. REQUIRES: there is one.
bool interrupt_requested();

inline constexpr int kInterruptedExitCode = 130;

}  // namespace tidemark
