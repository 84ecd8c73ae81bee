#include "models/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>

namespace tidemark {
namespace {

// utf8proc's numbers. Those of one group (letters, digits, punctuation) are consecutive.
utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}
bool is_between(utf8proc_category_t category, utf8proc_category_t first,
                utf8proc_category_t last) {
  return category >= first && category <= last;
}

bool is_ascii_letter_upper(char32_t code) { return code >= 'A' && code <= 'Z'; }

const utf8proc_uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

struct Utf8Part {
  size_t size;    // at least 1
  size_t wanted;  // of the code point that the part begins; 0 where none can begin so
};

// The longest part at the start of `text` that may begin a code point. REQUIRES: not empty.
Utf8Part first_utf8_part(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, 1};
  if (lead < 0xC2 || lead > 0xF4) return {1, 0};
  const size_t wanted = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte excludes overlong forms, surrogates and what lies above 10FFFF.
  const unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  size_t size = 1;
  while (size < wanted && size < text.size()) {
    const bool fits = size == 1 ? byte(1) >= least && byte(1) <= most : byte(size) >> 6 == 2;
    if (!fits) break;
    ++size;
  }
  return {size, wanted};
}

}  // namespace

char32_t next_code_point(std::string_view text, size_t& at) {
  const std::string_view rest = text.substr(at);
  if (static_cast<unsigned char>(rest.front()) < 0x80) {
    ++at;
    return static_cast<char32_t>(rest.front());
  }
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t length =
      utf8proc_iterate(bytes_of(rest), static_cast<utf8proc_ssize_t>(rest.size()), &code);
  at += static_cast<size_t>(std::max<utf8proc_ssize_t>(length, 1));
  return length > 0 ? static_cast<char32_t>(code) : kReplacement;
}

void append_utf8(std::string& text, char32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t length =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  text.append(bytes.begin(), bytes.begin() + length);
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    // A genuine replacement character has three bytes.
    if (next_code_point(text, at) == kReplacement && at - start == 1) return false;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const Utf8Part part = first_utf8_part(text);
    if (part.size == part.wanted) {
      valid += text.substr(0, part.size);
    } else {
      append_utf8(valid, kReplacement);
    }
    text.remove_prefix(part.size);
  }
  return valid;
}

size_t incomplete_utf8_suffix(std::string_view text) {
  for (size_t size = 1; size <= 3 && size <= text.size(); ++size) {
    const Utf8Part part = first_utf8_part(text.substr(text.size() - size));
    if (part.size == size && part.wanted > size) return size;
  }
  return 0;
}

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) next_code_point(text, at);
  return count;
}

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || code == '\t' || code == '\n' || code == '\r';
  return is_python_space(code) && !is_control(code);
}

bool is_control(char32_t code) {
  if (code < 0x80) return (code < ' ' || code == 0x7F) && !is_white_space(code);
  return is_between(category(code), UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF);
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) {
    return (code > ' ' && code < '0') || (code > '9' && code < 'A') ||
           (code > 'Z' && code < 'a') || (code > 'z' && code < 0x7F);
  }
  return is_between(category(code), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_cjk(char32_t code) {
  struct Range {
    char32_t first, last;  // both included
  };
  static constexpr Range kIdeographs[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
      {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return code >= 0x3400 &&
         std::any_of(std::begin(kIdeographs), std::end(kIdeographs), [&](const Range& range) {
           return code >= range.first && code <= range.last;
         });
}

bool is_word_character(char32_t code) {
  const utf8proc_category_t of = category(code);
  return code == '_' || is_between(of, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO) ||
         is_between(of, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_python_space(char32_t code) {
  const utf8proc_property_t* const property =
      utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
  switch (property->bidi_class) {
    case UTF8PROC_BIDI_CLASS_B:
    case UTF8PROC_BIDI_CLASS_S:
    case UTF8PROC_BIDI_CLASS_WS: return true;
    default: return property->category == UTF8PROC_CATEGORY_ZS;
  }
}

CodeText lower_case(char32_t code) {
  if (code < 0x80) return {{is_ascii_letter_upper(code) ? code + 32 : code}, 1};
  // The only code that becomes two: the Turkish capital I with a dot.
  if (code == 0x130) return {{U'i', 0x307}, 2};
  return {{static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)))}, 1};
}

CodeText fold(char32_t code) {
  if (code < 0x80) return lower_case(code);
  CodeText text;
  const CodeText lower = lower_case(code);
  for (const char32_t c : lower.view()) {
    std::array<utf8proc_int32_t, text.codes.size()> parts{};
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                                UTF8PROC_DECOMPOSE, nullptr);
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      const auto part = static_cast<char32_t>(parts[static_cast<size_t>(i)]);
      if (category(part) != UTF8PROC_CATEGORY_MN) text.codes[text.size++] = part;
    }
  }
  return text;
}

}  // namespace tidemark
