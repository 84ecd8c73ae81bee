#include "examples/common/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace tidemark {
namespace {

// The first error on standard output; 0: none.
std::atomic<int> output_error = 0;

}  // namespace

void guard_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // open() returns the lowest free descriptor, which is this one. Writing to it fails, as it
    // would have anyway, so that the lost output is noticed.
    static_cast<void>(open("/dev/null", O_RDONLY));
  }
  std::signal(SIGPIPE, SIG_IGN);
}

void write_console(std::FILE* stream, std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  if (std::fflush(stream) == 0 && written) return;
  int none = 0;
  if (stream == stdout) output_error.compare_exchange_strong(none, errno == 0 ? EIO : errno);
}

std::optional<std::string> lost_output() {
  write_console(stdout, "");  // flushes what others left in its buffer
  if (output_error == 0 && std::ferror(stdout) == 0) return std::nullopt;
  return std::generic_category().message(output_error == 0 ? EIO : output_error.load());
}

}  // namespace tidemark
