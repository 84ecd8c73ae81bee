#include "models/text/word_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

// The first are from BERT's own tests (tokenization_test.py).
TEST(BasicTokenizer, Chinese) {
  EXPECT_THAT(split_words("ah\u535A\u63A8zz", true),
              ElementsAre("ah", "\u535A", "\u63A8", "zz"));
}

TEST(BasicTokenizer, Uncased) {
  EXPECT_THAT(split_words(" \tHeLLo!how  \n Are yoU?  ", true),
              ElementsAre("hello", "!", "how", "are", "you", "?"));
  EXPECT_THAT(split_words("H\u00E9llo", true), ElementsAre("hello"));
}

TEST(BasicTokenizer, Cased) {
  EXPECT_THAT(split_words(" \tHeLLo!how  \n Are yoU?  ", false),
              ElementsAre("HeLLo", "!", "how", "Are", "yoU", "?"));
  EXPECT_THAT(split_words("H\u00E9llo", false), ElementsAre("H\u00E9llo"));
}

TEST(BasicTokenizer, AccentsWrittenApartAreStrippedToo) {
  EXPECT_THAT(split_words("re\u0301sume\u0301", true), ElementsAre("resume"));
  EXPECT_THAT(split_words("a \u0301 b", true), ElementsAre("a", "b")) << "nothing is left";
}

TEST(BasicTokenizer, ControlsAndBrokenBytesVanishWithinWords) {
  using namespace std::string_literals;
  EXPECT_THAT(split_words("so\u00ADft \uFEFFmark\u200B"s, true), ElementsAre("soft", "mark"));
  EXPECT_THAT(split_words("a\0b\x07"
                          "c \xFF"
                          "d \uFFFDe"s,
                          true),
              ElementsAre("abc", "d", "e"));
}

TEST(BasicTokenizer, PunctuationStandsAlone) {
  EXPECT_THAT(
      split_words("don't--\u201Cquote\u201D $5.00", true),
      ElementsAre("don", "'", "t", "-", "-", "\u201C", "quote", "\u201D", "$", "5", ".", "00"));
  EXPECT_THAT(split_words("a\u037Eb", true), ElementsAre("a", ";", "b"))
      << "what becomes punctuation";
  EXPECT_THAT(split_words("[MASK]", false), ElementsAre("[", "MASK", "]"));
}

TEST(BasicTokenizer, NothingInNothingOut) {
  EXPECT_THAT(split_words("", true), IsEmpty());
  EXPECT_THAT(split_words(" \t\u3000\u200B", true), IsEmpty());
}

TEST(BasicTokenizer, KnowsWhereCharactersComeFrom) {
  const std::string text = " \u00C9a\u0301!";
  std::vector<WordCharacter> seen;
  for_each_word(text, true, [&](const Word& word) {
    if (word.text == "ea") seen = word.characters;
  });
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].begin, 1u);
  EXPECT_EQ(seen[0].end, 3u);
  EXPECT_EQ(seen[1].begin, 3u);
  EXPECT_EQ(seen[1].at, 1u);
}

Vocabulary bert_test_vocabulary() {
  return Vocabulary(
      {"[UNK]", "[CLS]", "[SEP]", "want", "##want", "##ed", "wa", "un", "runn", "##ing", ","});
}

TEST(WordPiece, AsInBertsTests) {
  const WordPiece cased(bert_test_vocabulary(), {.uncased = false});
  EXPECT_THAT(cased.pieces(""), IsEmpty());
  EXPECT_THAT(cased.pieces("unwanted running"),
              ElementsAre("un", "##want", "##ed", "runn", "##ing"));
  EXPECT_THAT(cased.pieces("unwantedX running"), ElementsAre("[UNK]", "runn", "##ing"));
  const WordPiece uncased(bert_test_vocabulary());
  EXPECT_THAT(uncased.pieces("UNwant\u00E9d,running"),
              ElementsAre("un", "##want", "##ed", ",", "runn", "##ing"));
  EXPECT_THAT(uncased.ids("UNwant\u00E9d,running"), ElementsAre(7, 4, 5, 10, 8, 9));
}

TEST(WordPiece, TheLongestPieceWinsFromTheLeft) {
  const WordPiece pieces(
      Vocabulary({"[UNK]", "a", "ab", "abc", "##b", "##bcd", "##cd", "##d"}));
  EXPECT_THAT(pieces.pieces("abcd"), ElementsAre("abc", "##d"));
  EXPECT_THAT(pieces.pieces("abcdd"), ElementsAre("abc", "##d", "##d"));
  EXPECT_THAT(pieces.pieces("abce"), ElementsAre("[UNK]"));
  EXPECT_THAT(pieces.pieces("bcd"), ElementsAre("[UNK]")) << "## is not for beginnings";
}

TEST(WordPiece, WordsThatAreTooLongAreUnknown) {
  const WordPiece pieces(Vocabulary({"[UNK]", "a", "##a"}), {.longest_word = 5});
  EXPECT_EQ(pieces.pieces("aaaaa").size(), 5u);
  EXPECT_THAT(pieces.pieces("aaaaaa a"), ElementsAre("[UNK]", "a"));
  const WordPiece usual(Vocabulary({"[UNK]", "\u00f8", "##\u00f8"}));
  std::string word;
  for (int i = 0; i < 100; ++i) word += "\u00f8";
  EXPECT_EQ(usual.pieces(word).size(), 100u) << "characters, not bytes";
  EXPECT_EQ(usual.pieces(word + "\u00f8").size(), 1u);
}

TEST(WordPiece, TokensKnowTheirPlaceInTheText) {
  const WordPiece pieces(bert_test_vocabulary());
  const std::string text = "  UNwant\u00E9d, x";
  const std::vector<Token> tokens = pieces.tokenize(text);
  ASSERT_EQ(tokens.size(), 5u);
  const auto part = [&](size_t i) {
    return text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin);
  };
  EXPECT_EQ(part(0), "UN");
  EXPECT_EQ(part(1), "want");
  EXPECT_EQ(part(2), "\u00E9d");
  EXPECT_EQ(part(3), ",");
  EXPECT_EQ(part(4), "x");
  EXPECT_EQ(tokens[4].id, 0);
}

TEST(WordPiece, Decodes) {
  const WordPiece pieces(bert_test_vocabulary());
  EXPECT_EQ(pieces.decode(pieces.ids("Unwanted, running.")), "unwanted , running [UNK]");
  const std::vector<int32_t> framed{1, 8, 9, 2};
  EXPECT_EQ(pieces.decode(framed), "running");
  const std::vector<int32_t> begins_within{9, 3};
  EXPECT_EQ(pieces.decode(begins_within), "##ing want");
  EXPECT_EQ(pieces.decode({}), "");
  const std::vector<int32_t> beyond{11}, negative{-1};
  EXPECT_THROW(pieces.decode(beyond), UsageError);
  EXPECT_THROW(pieces.decode(negative), UsageError);
}

}  // namespace
}  // namespace tidemark
