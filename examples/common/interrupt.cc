#include "examples/common/interrupt.h"

#include <csignal>

namespace tidemark {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptScope::InterruptScope() {
  interrupted = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

InterruptScope::~InterruptScope() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptScope::requested() const { return interrupted != 0; }

}  // namespace tidemark
