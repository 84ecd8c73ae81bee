#include "models/text/tokenizer/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/text/tokenizer/byte_level.h"
#include "runtime/core/errors.h"

namespace tidemark::tokenizers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Parts = std::vector<std::string>;

Parts parts(const std::string& text, const TextRanges& ranges) {
  Parts all;
  for (const TextRange& range : ranges) all.emplace_back(range.of(text));
  return all;
}

Parts matches(const std::string& pattern, const std::string& text) {
  return parts(text, Regex(pattern, "file", "place").find_all(text));
}

Parts split(SplitBehavior behavior, bool invert = false) {
  const std::string text = "-a--b-c";
  return parts(
      text, split_by(Pattern(std::string("-")).find_all(text), text.size(), behavior, invert));
}

TEST(Split, EveryBehavior) {
  EXPECT_THAT(split(SplitBehavior::kRemoved), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split(SplitBehavior::kIsolated), ElementsAre("-", "a", "-", "-", "b", "-", "c"));
  EXPECT_THAT(split(SplitBehavior::kMergedWithPrevious),
              ElementsAre("-", "a-", "-", "b-", "c"));
  EXPECT_THAT(split(SplitBehavior::kMergedWithNext), ElementsAre("-a", "-", "-b", "-c"));
  EXPECT_THAT(split(SplitBehavior::kContiguous), ElementsAre("-", "a", "--", "b", "-", "c"));
}

TEST(Split, Inverted) {
  EXPECT_THAT(split(SplitBehavior::kRemoved, true), ElementsAre("-", "-", "-", "-"));
  EXPECT_THAT(split(SplitBehavior::kMergedWithPrevious, true),
              ElementsAre("-a", "-", "-b", "-c"));
}

TEST(Regex, ReadsOnigurumasClasses) {
  EXPECT_THAT(matches("\\s", "a\u0085\u3000\u180E"), ElementsAre("\u0085", "\u3000"));
  EXPECT_THAT(matches("\\w+", "a_\u0301\u24B6\u00B2 -"), ElementsAre("a_\u0301\u24B6\u00B2"));
  EXPECT_THAT(matches("[^\\s\\w]+", "a!?\u180E b"), ElementsAre("!?\u180E"));
  EXPECT_THAT(matches("\\S+|\\W", "a \u180E"), ElementsAre("a", " ", "\u180E"));
  EXPECT_THAT(matches("\\d+", "1\u0662\u00BD"), ElementsAre("1\u0662"));
  EXPECT_THAT(matches("\\u0061\\x{62}", "ab"), ElementsAre("ab"));
  EXPECT_THAT(matches("a{,2}b", "aaab"), ElementsAre("aab"));
  EXPECT_THAT(matches("^a|b$", "a\na b\nb"), ElementsAre("a", "a", "b", "b"));
  EXPECT_THAT(matches("(?i:'s)", "'S'\u017F"), ElementsAre("'S", "'\u017F"));
  EXPECT_THAT(matches("[]a]+", "a]b"), ElementsAre("a]"));
}

TEST(Regex, EmptyMatchesAreThoseOfOniguruma) {
  EXPECT_EQ(Regex("x*", "f", "p").find_all("axxb"), (TextRanges{{0, 0}, {1, 3}, {4, 4}}));
  EXPECT_EQ(Regex("", "f", "p").find_all("\u00E9a"), (TextRanges{{0, 0}, {2, 2}, {3, 3}}));
}

TEST(Regex, AVerticalTabIsNoOtherLineEnd) {
  EXPECT_THAT(matches("\\v|[\\v;]", "a\n\u2028b\vc;"), ElementsAre("\v", ";"));
  EXPECT_THAT(matches("(?i:A)[\\b]", "a\ba"), ElementsAre("a\b"));
}

TEST(Regex, FindsWhatIsFarAway) {
  const std::string far(1000, '.');
  EXPECT_THAT(matches("a", far + "a" + far + "a"), ElementsAre("a", "a"));
  std::string wide;
  for (int i = 0; i < 300; ++i) wide += "\u4F60";
  EXPECT_THAT(matches("a", wide + "a"), ElementsAre("a"));
  EXPECT_THAT(matches("[^\u4F60]", wide), ElementsAre()) << "no search begins in a character";
  EXPECT_THAT(matches("(?<=a)b", far + "ab"), ElementsAre("b"));
}

TEST(Regex, RefusesWhatItCannotRewrite) {
  const std::pair<const char*, const char*> refused[] = {
      {"\\h", "'\\h'"},
      {"a\\b", "'\\b'"},
      {"\\B", "'\\B'"},
      {"(?m:a.b)", "'(?m'"},
      {"(?is-m)a", "'(?m'"},
      {"(?(DEFINE)(ab\\K))(?=(?1))", "'\\K'"},
      {"a{1,2}+", "'{n,m}+'"},
      {"[a[bc]]", "a class within a class"},
      {"[a&&b]", "intersection"},
      {"[\\W]", "'\\W' in a class"},
      {"(", "not a regular expression"},
      {"\\C", "not a regular expression"}};
  for (const auto& [pattern, error] : refused) {
    try {
      const Regex regex(pattern, "file", "place");
      FAIL() << pattern;
    } catch (const DataError& thrown) {
      EXPECT_THAT(thrown.what(), HasSubstr("place: "));
      EXPECT_THAT(thrown.what(), HasSubstr(error));
    }
  }
}

TEST(ByteLevel, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
    EXPECT_EQ(parse_byte_piece(byte_piece(static_cast<uint8_t>(byte))), byte);
  }
  EXPECT_EQ(from_byte_level(to_byte_level(all)), all);
  EXPECT_EQ(to_byte_level(" \n"), "\u0120\u010A");
  EXPECT_EQ(from_byte_level("a b"), std::nullopt);
  EXPECT_EQ(byte_piece(10), "<0x0A>");
  EXPECT_EQ(parse_byte_piece("<0xZZ>"), std::nullopt);
}

}  // namespace
}  // namespace tidemark::tokenizers
