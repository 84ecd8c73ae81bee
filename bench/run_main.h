// The main function of a benchmark.
#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <string_view>

namespace tidemark {

// Prints `usage` if the arguments ask for it (exit code 0), or are `wrong` (2). None: neither.
inline std::optional<int> explain_usage(int argc, char** argv, bool wrong, const char* usage) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool asked = first == "--help" || first == "-h";
  if (!asked && !wrong) return std::nullopt;
  std::fprintf(asked ? stdout : stderr, "usage: %s\n", usage);
  return asked ? 0 : 2;
}

// run(argc, argv); an exception is printed and ends the program with `code`. Bad flags, for
// which CLI11_PARSE returns 100 or more, end it with 2.
inline int run_main(const char* program, int (*run)(int, char**), int argc, char** argv,
                    int code) {
  constexpr int kFirstOfCli11 = 100;
  try {
    const int result = run(argc, argv);
    return result < kFirstOfCli11 ? result : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return code;
  }
}

}  // namespace tidemark
