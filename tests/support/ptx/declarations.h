// Numbers, types and declarations of variables, as PTX writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tests/support/ptx/kernel.h"
#include "tests/support/ptx/lexer.h"

namespace tidemark::ptx {

// 12, -4, 0x7F, and floats by their bits: 0f3F800000, 0d3FF0000000000000.
std::optional<uint64_t> parse_number(std::string_view text);

// The type of a suffix, without its dot.
std::optional<Type> parse_type(std::string_view word);

// Declares a variable from the words `.align 4 .b8 name[16]`, after what `total` bytes hold
// already. Leaves `words` behind it, at `;`, `,`, `)` or `=`. Throws NotCovered.
Variable parse_variable(std::span<const Token>& words, int64_t& total);

}  // namespace tidemark::ptx
