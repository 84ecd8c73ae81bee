// The main function of a benchmark.
#pragma once

#include <cstdio>
#include <exception>

namespace tidemark {

// run(argc, argv); an exception is printed and ends the program with `code`.
inline int run_main(const char* program, int (*run)(int, char**), int argc, char** argv,
                    int code) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return code;
  }
}

}  // namespace tidemark
