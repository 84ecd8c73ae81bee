// Bytes written as visible characters, as in GPT-2's vocabulary: each of the 256 bytes has a
// character of its own, and a space becomes U+0120.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark::tokenizers {

std::string to_byte_level(std::string_view bytes);
// Nothing if a character stands for no byte.
std::optional<std::string> from_byte_level(std::string_view text);

// How vocabularies with byte fallback write a byte: "<0x0A>".
std::string byte_piece(uint8_t byte);
std::optional<uint8_t> parse_byte_piece(std::string_view piece);

}  // namespace tidemark::tokenizers
