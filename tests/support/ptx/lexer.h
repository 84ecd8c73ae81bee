// Splits PTX into words and punctuation.
#pragma once

#include <string_view>
#include <vector>

namespace tidemark::ptx {

struct Token {
  std::string_view text;  // into the source
  int line = 0;
};

// A word is a name, a number, an instruction with its suffixes, or a directive: `ld.param.u64`,
// `%rd1`, `-16`, `.entry`, `$L__BB0_3`. All else is one character. Comments are left out.
std::vector<Token> tokenize(std::string_view source);

}  // namespace tidemark::ptx
