#include "examples/common/interrupt.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace tidemark {
namespace {

// A process that gets `first` and `second` within a scope: the signal that ends it, or 0 if
// none does. -1: the first one was no request.
int ended_by(int first, int second) {
  const pid_t child = fork();
  if (child == 0) {
    const InterruptScope scope;
    raise(first);
    if (!scope.requested()) _exit(1);
    raise(second);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  return WEXITSTATUS(status) == 0 ? 0 : -1;
}

// A terminal that goes may send SIGHUP more than once; that is one request.
TEST(Interrupt, TheFirstOfAnyKindIsARequestAndASecondOneEnds) {
  for (const int first : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(ended_by(first, SIGINT), SIGINT) << first;
    EXPECT_EQ(ended_by(first, SIGTERM), SIGTERM) << first;
    EXPECT_EQ(ended_by(first, SIGHUP), 0) << first;
  }
}

TEST(Interrupt, UnderNohupHangingUpStaysIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(ended_by(SIGINT, SIGHUP), 0);
  EXPECT_EQ(ended_by(SIGINT, SIGINT), SIGINT);
  { const InterruptScope scope; }
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

}  // namespace
}  // namespace tidemark
