// Standard output and standard error of a program. Writes to either may fail while it runs: the
// disk is full, the pipe's reader is gone, or the shell had closed the stream. Such a failure
// never ends the program; run_program() (program.h) turns lost standard output into an exit
// code.
//
// Threads: any; the text of one call stays together.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tidemark {

// Opens /dev/null in place of closed streams, so that no file of the program becomes standard
// output, and ignores SIGPIPE. Call before opening any file.
void guard_standard_streams();

// Writes to `stream` immediately. Never throws, unlike {fmt}'s printing.
void write_console(std::FILE* stream, std::string_view text);

template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_console(stdout, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  write_console(stderr, fmt::format(format, std::forward<Args>(args)...));
}

// The reason why part of standard output was lost, such as "No space left on device"; nullopt
// if everything was written.
std::optional<std::string> lost_output();

}  // namespace tidemark
