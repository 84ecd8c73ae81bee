#include "examples/common/interrupt.h"

#include <csignal>

#include "runtime/core/atomic_file.h"

namespace tidemark {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int signal) {
  if (interrupted) {
    remove_partial_files();
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // ends the process once this handler returns
  }
  interrupted = 1;
}

void on_hang_up(int) { interrupted = 1; }

}  // namespace

InterruptScope::InterruptScope() {
  interrupted = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  if (std::signal(SIGHUP, on_hang_up) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

InterruptScope::~InterruptScope() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

bool InterruptScope::requested() const { return interrupt_requested(); }
bool interrupt_requested() { return interrupted != 0; }

}  // namespace tidemark
