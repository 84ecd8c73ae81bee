#include "models/text/unicode.h"

#include <gtest/gtest.h>

#include <string>

namespace tidemark {
namespace {

std::string folded(char32_t code) {
  std::string text;
  const CodeText result = fold(code);
  for (const char32_t c : result.view()) append_utf8(text, c);
  return text;
}

std::string lowered(char32_t code) {
  std::string text;
  const CodeText result = lower_case(code);
  for (const char32_t c : result.view()) append_utf8(text, c);
  return text;
}

TEST(Utf8, EveryCodePointComesBack) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    size_t at = 0;
    ASSERT_EQ(next_code_point(text, at), code);
    ASSERT_EQ(at, text.size());
    ASSERT_TRUE(is_utf8(text));
  }
}

TEST(Utf8, WhatIsNotIsReplacedByteByByte) {
  using namespace std::string_literals;
  const std::string bad[] = {
      "\x80"s,              // a continuation by itself
      "\xC3"s,              // cut short
      "\xC3("s,             // not continued
      "\xC0\xAF"s,          // overlong
      "\xE0\x80\xAF"s,      // overlong
      "\xED\xA0\x80"s,      // a surrogate
      "\xF4\x90\x80\x80"s,  // above 10FFFF
      "\xF8\x88\x80\x80"s,  // no such length
      "\xE4\xB8"s,          // cut short
  };
  for (const std::string& text : bad) {
    size_t at = 0;
    EXPECT_EQ(next_code_point(text, at), kReplacement);
    EXPECT_EQ(at, 1u);
    EXPECT_FALSE(is_utf8(text));
    EXPECT_FALSE(is_utf8("ab" + text));
  }
  EXPECT_TRUE(is_utf8("\xEF\xBF\xBD")) << "the replacement character itself";
  EXPECT_EQ(count_code_points("h\u00e9\u535a!"), 4u);
}

// From BERT's own tests (tokenization_test.py).
TEST(CodePoints, WhiteSpaceControlsAndPunctuationAreBerts) {
  for (const char32_t code : {U' ', U'\t', U'\r', U'\n', U'\u00A0'}) {
    EXPECT_TRUE(is_white_space(code)) << static_cast<uint32_t>(code);
  }
  for (const char32_t code : {U'A', U'-'}) EXPECT_FALSE(is_white_space(code));
  EXPECT_TRUE(is_control(U'\u0005'));
  for (const char32_t code : {U'A', U' ', U'\t', U'\r', U'\U0001F4A9'}) {
    EXPECT_FALSE(is_control(code));
  }
  for (const char32_t code : {U'-', U'$', U'`', U'.'}) EXPECT_TRUE(is_punctuation(code));
  for (const char32_t code : {U'A', U' '}) EXPECT_FALSE(is_punctuation(code));
}

TEST(CodePoints, BeyondAscii) {
  for (const char32_t code : {U'\u2014', U'\u201C', U'\u3002', U'\u00BF'}) {
    EXPECT_TRUE(is_punctuation(code));
  }
  EXPECT_FALSE(is_punctuation(U'\u20AC')) << "the euro sign is a symbol";
  EXPECT_TRUE(is_control(U'\u200B'));
  EXPECT_TRUE(is_control(U'\u0085'));
  EXPECT_TRUE(is_white_space(U'\u3000'));
  EXPECT_TRUE(is_white_space(U'\u2028'));
  EXPECT_TRUE(is_cjk(U'\u4E00'));
  EXPECT_TRUE(is_cjk(U'\U0002F800'));
  EXPECT_FALSE(is_cjk(U'\u3042')) << "kana";
  EXPECT_FALSE(is_cjk(U'\uAC00')) << "Hangul";
  EXPECT_TRUE(is_word_character(U'\u00E9'));
  EXPECT_TRUE(is_word_character(U'_'));
  EXPECT_FALSE(is_word_character(U'-'));
}

TEST(CodePoints, FoldingLowersAndStripsAccents) {
  EXPECT_EQ(folded(U'A'), "a");
  EXPECT_EQ(folded(U'z'), "z");
  EXPECT_EQ(folded(U'\u00C9'), "e");
  EXPECT_EQ(folded(U'\u00FC'), "u");
  EXPECT_EQ(folded(U'\u1EC7'), "e") << "two accents";
  EXPECT_EQ(folded(U'\u0130'), "i");
  EXPECT_EQ(folded(U'\u0301'), "") << "an accent by itself";
  EXPECT_EQ(folded(U'\u00DF'), "\u00df");
  EXPECT_EQ(folded(U'\u00D8'), "\u00f8") << "a stroke is no accent";
  EXPECT_EQ(folded(U'\u03AC'), "\u03b1");
  EXPECT_EQ(folded(U'\u0419'), "\u0438");
  EXPECT_EQ(folded(U'\uAC01'), "\u1100\u1161\u11a8");
  EXPECT_EQ(folded(U'\uAC00'), "\u1100\u1161");
  EXPECT_EQ(folded(U'\uF900'), "\u8c48");
}

TEST(CodePoints, LoweringKeepsAccents) {
  EXPECT_EQ(lowered(U'\u00C9'), "\u00e9");
  EXPECT_EQ(lowered(U'\u0130'), "i\u0307");
  EXPECT_EQ(lowered(U'\u0301'), "\u0301");
}

TEST(Utf8, InvalidPartsAreReplacedAsUnicodeRecommends) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(replace_invalid_utf8(""), "");
  EXPECT_EQ(replace_invalid_utf8("a\u20AC\U0010FFFFz"), "a\u20AC\U0010FFFFz");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82z"), r + "z") << "the start of a character";
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), r);
  EXPECT_EQ(replace_invalid_utf8("\x80\xBF"), r + r) << "no starts";
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), r + r) << "overlong";
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r) << "a surrogate";
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), r + r + r + r) << "above 10FFFF";
}

TEST(Utf8, AnIncompleteCharacterAtTheEndIsMeasured) {
  EXPECT_EQ(incomplete_utf8_suffix(""), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\u20AC"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE2"), 1u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE2\x82"), 2u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xED\xA0"), 0u) << "never completes";
  EXPECT_EQ(incomplete_utf8_suffix("\x80\x80\x80"), 0u);
}

}  // namespace
}  // namespace tidemark
