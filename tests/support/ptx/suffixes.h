// Decodes the suffixes of an instruction's name: `.global.v4.f32`.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/ptx/instructions.h"

namespace tidemark::ptx {

// Notes types, state space and modifiers of `word`, which is the name with its suffixes, and
// returns the row of the table. Throws NotCovered; `place` is for its message.
const Opcode& decode_suffixes(std::string_view word, const std::string& place,
                              Instruction& instruction);

}  // namespace tidemark::ptx
