// From main() to an exit code: the work common to all programs.
#pragma once

#include <functional>
#include <string>

#include "examples/common/flags.h"

namespace tidemark {

enum ExitCode { kDone = 0, kFailed = 1, kBadInput = kUsageExitCode, kOutOfMemory = 3 };

// Returns body's result. If body throws, explains the error on standard error and returns the
// error's exit code.
int explain_errors(const std::string& program, const std::function<int()>& body);

// The whole of main(): prepares standard streams and signals, runs `body`, and returns the exit
// code. If only part of standard output was lost, the code is 1.
int run_program(const std::string& program, const std::function<int()>& body);

}  // namespace tidemark
