// Turns the body of a kernel, in words, into instructions with numbered registers. Constants,
// special registers and addresses of variables become registers that are set before the kernel
// starts, so that an instruction finds all its operands in the same way.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/ptx/kernel.h"
#include "tests/support/ptx/lexer.h"

namespace tidemark::ptx {

// A name that stands for an address: a parameter or a variable.
struct Symbol {
  uint64_t address = 0;  // within its state space
  int64_t bytes = 0;
  bool global = false;
  bool constant = false;
  bool added = false;  // shared memory that a launch adds, behind what is declared
};
using Symbols = std::map<std::string, Symbol, std::less<>>;

// `body` is what stands between the braces; `symbols` has those of the module, and the kernel's
// parameters. Throws NotCovered.
void decode_body(Kernel& kernel, std::span<const Token> body, Symbols symbols);

}  // namespace tidemark::ptx
