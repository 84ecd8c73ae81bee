// Standard output and standard error of a program. Either may be lost while it runs: the disk
// is full, the reader of the pipe has gone, the shell had closed it. That never ends the
// program; run_program() (program.h) turns lost standard output into an exit code.
//
// Threads: any; what one call prints stays together.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tidemark {

// Opens /dev/null in place of closed ones, so that no file of the program becomes standard
// output, and ignores SIGPIPE. To be called before any file is opened.
void guard_standard_streams();

// To `stream`, at once. Never throws, as printing by {fmt} does.
void write_console(std::FILE* stream, std::string_view text);

template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_console(stdout, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  write_console(stderr, fmt::format(format, std::forward<Args>(args)...));
}

// Why a part of standard output was lost so far, such as "No space left on device"; nothing if
// all of it was written.
std::optional<std::string> lost_output();

}  // namespace tidemark
