// From main() to an exit code: what every program does around its work.
#pragma once

#include <functional>
#include <string>

#include "examples/common/flags.h"

namespace tidemark {

enum ExitCode { kDone = 0, kFailed = 1, kBadInput = kUsageExitCode, kOutOfMemory = 3 };

// What `body` returns; if it throws, the exit code of that, explained on standard error.
int explain_errors(const std::string& program, const std::function<int()>& body);

// All of main(): readies standard streams and signals, runs `body`, and gives the exit code. It
// is 1 if all went well but for standard output, a part of which was lost.
int run_program(const std::string& program, const std::function<int()>& body);

}  // namespace tidemark
