#include "models/text/tokenizer/byte_level.h"

#include <array>
#include <charconv>

#include "models/text/unicode.h"

namespace tidemark::tokenizers {
namespace {

// Latin-1's visible characters stand for themselves.
constexpr bool is_visible(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct ByteTables {
  std::array<std::string, 256> characters;
  std::array<int, 512> bytes{};  // by character; -1 for none

  ByteTables() {
    bytes.fill(-1);
    char32_t next = 256;  // for the others, in order
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t code = is_visible(byte) ? static_cast<char32_t>(byte) : next++;
      append_utf8(characters[static_cast<size_t>(byte)], code);
      bytes[code] = byte;
    }
  }
};

const ByteTables& byte_tables() {
  static const ByteTables tables;
  return tables;
}

}  // namespace

std::string to_byte_level(std::string_view bytes) {
  const ByteTables& tables = byte_tables();
  std::string text;
  for (const char byte : bytes) text += tables.characters[static_cast<unsigned char>(byte)];
  return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  const ByteTables& tables = byte_tables();
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const char32_t code = next_code_point(text, at);
    if (code >= tables.bytes.size() || tables.bytes[code] < 0) return std::nullopt;
    bytes += static_cast<char>(tables.bytes[code]);
  }
  return bytes;
}

std::string byte_piece(uint8_t byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + '>';
}

std::optional<uint8_t> parse_byte_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') {
    return std::nullopt;
  }
  uint8_t byte = 0;
  const char* const end = piece.data() + 5;
  const auto parsed = std::from_chars(piece.data() + 3, end, byte, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return byte;
}

}  // namespace tidemark::tokenizers
