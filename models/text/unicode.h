// UTF-8, and the properties of code points that tokenizers use, from utf8proc. The machine's
// utf8proc decides the version of Unicode: 15 or later; a newer version only adds characters.
//
// Pure functions; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tidemark {

inline constexpr char32_t kReplacement = 0xFFFD;

// Returns the code point that starts at text[at], and advances `at` past it. Invalid UTF-8
// (including surrogates, overlong forms and values above 10FFFF) gives kReplacement and
// advances by one byte. REQUIRES: at < text.size().
char32_t next_code_point(std::string_view text, size_t& at);
void append_utf8(std::string& text, char32_t code);
bool is_utf8(std::string_view text);
// The same text with U+FFFD for each part that is not UTF-8. As in Unicode's recommendation, a
// part is the longest that might begin a code point, or one byte.
std::string replace_invalid_utf8(std::string_view text);
// Number of bytes at the end that begin a code point without completing it: 0 to 3.
size_t incomplete_utf8_suffix(std::string_view text);
// Number of code points; each byte of invalid UTF-8 counts as one.
size_t count_code_points(std::string_view text);

// The classes of BERT's tokenizer: white space separates words, control characters are dropped,
// and every ASCII character other than letters, digits and spaces is punctuation, including $
// and ^.
bool is_white_space(char32_t code);
bool is_control(char32_t code);
bool is_punctuation(char32_t code);
// Ideographs, each of which BERT treats as a word; neither kana nor Hangul.
bool is_cjk(char32_t code);
// Letters, digits and _: the characters that \w matches in Python.
bool is_word_character(char32_t code);
bool is_python_space(char32_t code);  // as str.isspace()

// The replacement of one code point: up to four code points, in `codes`.
struct CodeText {
  std::array<char32_t, 4> codes{};
  size_t size = 0;
  std::span<const char32_t> view() const& { return {codes.data(), size}; }
  std::span<const char32_t> view() const&& = delete;  // the view would outlive its object
};
CodeText lower_case(char32_t code);
// Lower case without accents: decomposed (NFD), without nonspacing marks. A lone mark becomes
// nothing. Each code point is treated separately, so Greek's final sigma is not recognised.
CodeText fold(char32_t code);

}  // namespace tidemark
