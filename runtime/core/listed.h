// Names in a sentence, and on a line of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

// "a, b, c"; with " or " before the last: "a, b or c".
inline std::string listed(const std::vector<std::string>& names,
                          const std::string& before_last = ", ") {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 == names.size() ? before_last : ", ";
    list += names[i];
  }
  return list;
}

// Control characters, on which a terminal acts, as escapes: "\n", "\x1b". For names from files.
inline std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    auto code = static_cast<unsigned char>(text[i]);
    // Some terminals act on U+0080 to U+009F too, which UTF-8 writes as 0xC2 and the code.
    const bool is_high = code == 0xC2 && i + 1 < text.size() &&
                         static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                         static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_high) code = static_cast<unsigned char>(text[++i]);
    if (code == '\n') {
      result += "\\n";
    } else if (is_high || code < 0x20 || code == 0x7F) {
      result += "\\x";
      result += kDigits[code >> 4];
      result += kDigits[code & 15];
    } else {
      result += static_cast<char>(code);
    }
  }
  return result;
}

}  // namespace tidemark
