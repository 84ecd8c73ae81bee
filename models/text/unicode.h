// UTF-8, and the properties of code points that tokenizers go by, as utf8proc has them (which
// version of Unicode that is depends on the machine's: 15 or later; what a newer one adds is
// new characters only).
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

// The code point that starts at text[at], and moves `at` behind it. What is not UTF-8 (also
// surrogates, overlong forms and values above 10FFFF) gives kReplacement and moves by one byte.
// REQUIRES: at < text.size().
char32_t next_code_point(std::string_view text, size_t& at);
void append_utf8(std::string& text, char32_t code);
bool is_utf8(std::string_view text);
// Number of code points, each byte that is not UTF-8 counted as one.
size_t count_code_points(std::string_view text);

// As BERT's tokenizer has them: white space is what separates words, controls are dropped, and
// every ASCII character that is neither letter, digit nor space is punctuation, such as $ and
// ^.
bool is_white_space(char32_t code);
bool is_control(char32_t code);
bool is_punctuation(char32_t code);
// Ideographs, which BERT takes for words of their own; not kana, not Hangul.
bool is_cjk(char32_t code);
// Letters, digits and _: what \w matches in Python.
bool is_word_character(char32_t code);
bool is_python_space(char32_t code);  // what str.isspace() says

// What one code point becomes: up to four, in `codes`.
struct CodeText {
  std::array<char32_t, 4> codes{};
  size_t size = 0;
  std::span<const char32_t> view() const& { return {codes.data(), size}; }
  std::span<const char32_t> view() const&& = delete;  // it would not live as long as its view
};
CodeText lower_case(char32_t code);
// Lower case without accents: decomposed (NFD), nonspacing marks left out. A mark by itself
// becomes nothing. Each code point stands alone: Greek's final sigma is not told apart.
CodeText fold(char32_t code);

}  // namespace tidemark
