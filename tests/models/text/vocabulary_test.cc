#include "models/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/text/text_corpus.h"
#include "models/text/word_piece.h"
#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using testing::data_error;
using ::testing::ElementsAre;
using testing::TempFolder;

std::vector<std::string> pieces_of(const Vocabulary& vocabulary) {
  std::vector<std::string> pieces;
  for (int64_t id = 0; id < vocabulary.size(); ++id) pieces.push_back(vocabulary.piece(id));
  return pieces;
}

int64_t vocabulary_error(std::string_view text) {
  return data_error([&] { Vocabulary::parse("vocab.txt", text); }, "vocab.txt");
}

TEST(Vocabulary, IsNumberedByLine) {
  const Vocabulary vocabulary = Vocabulary::parse("v", "[PAD]\n[UNK]\n[CLS]\n\u4e2d\n##ing\n");
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.pad(), 0);
  EXPECT_EQ(vocabulary.unknown(), 1);
  EXPECT_EQ(vocabulary.classify(), 2);
  EXPECT_EQ(vocabulary.find("##ing"), 4);
  EXPECT_EQ(vocabulary.find("ing"), std::nullopt);
  EXPECT_EQ(vocabulary.piece(3), "\u4e2d");
  EXPECT_THROW(vocabulary.mask(), UsageError);
  EXPECT_THROW(vocabulary.piece(5), UsageError);
}

TEST(Vocabulary, LineEndsMayBeWindowsOnesAndTheLastMayLack) {
  EXPECT_THAT(pieces_of(Vocabulary::parse("v", "[UNK]\r\na\r\nb")),
              ElementsAre("[UNK]", "a", "b"));
  EXPECT_THAT(pieces_of(Vocabulary::parse("v", "[UNK]\n \n\n\r\n")), ElementsAre("[UNK]", " "));
}

TEST(Vocabulary, BadLinesAreNamedByOffset) {
  EXPECT_EQ(vocabulary_error("[UNK]\n\na\n"), 6);
  EXPECT_EQ(vocabulary_error("[UNK]\na\nb\na\n"), 10);
  EXPECT_EQ(vocabulary_error("[UNK]\na\xFF\n"), 6);
  EXPECT_EQ(vocabulary_error("a\nb\n"), 4);
  EXPECT_EQ(vocabulary_error(""), 0);
  const TempFolder folder;
  data_error([&] { Vocabulary::read(folder.path() + "/none"); }, folder.path() + "/none");
}

TEST(Vocabulary, MadeByHandIsCheckedToo) {
  EXPECT_THROW(Vocabulary({"a", "b"}), UsageError);
  EXPECT_THROW(Vocabulary({"[UNK]", "a", "a"}), UsageError);
  EXPECT_THROW(Vocabulary({"[UNK]", ""}), UsageError);
}

TEST(Vocabulary, WrittenAndReadIsTheSame) {
  const TempFolder folder;
  const std::string path = folder.path() + "/vocab.txt";
  const Vocabulary vocabulary({"[UNK]", "caf\u00e9", "##x", "#"});
  vocabulary.write(path);
  EXPECT_EQ(pieces_of(Vocabulary::read(path)), pieces_of(vocabulary));
  data_error([&] { vocabulary.write(folder.path()); }, folder.path());
  std::filesystem::create_directory(path + kPartialSuffix);
  data_error([&] { vocabulary.write(path); }, path);
  EXPECT_EQ(pieces_of(Vocabulary::read(path)), pieces_of(vocabulary)) << "the old one stays";
}

// Characters: b##, ##a ##g ##n ##s ##u, h, p; then the pair seen most often, the older on a
// tie.
TEST(BuildVocabulary, JoinsTheMostFrequentPairs) {
  std::string text;
  const auto add = [&](const char* word, int times) {
    for (int i = 0; i < times; ++i) text += std::string(word) + ' ';
  };
  add("hug", 10);
  add("pug", 5);
  add("pun", 12);
  add("bun", 4);
  add("hugs", 5);
  const Vocabulary vocabulary = build_vocabulary(text, {.size = 18});
  EXPECT_THAT(pieces_of(vocabulary), ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                                 "##g", "##n", "##s", "##u", "b", "h", "p",
                                                 "##ug",    // 20
                                                 "##un",    // 16
                                                 "hug",     // 15
                                                 "pun",     // 12
                                                 "pug",     // 5
                                                 "hugs"));  // 5
}

TEST(BuildVocabulary, StopsWhenNothingIsSeenTwice) {
  const Vocabulary vocabulary = build_vocabulary("ab cd", {.size = 100});
  EXPECT_EQ(vocabulary.size(), 5 + 4);
}

TEST(BuildVocabulary, KeepsTheMostFrequentCharacters) {
  const Vocabulary vocabulary =
      build_vocabulary("aaa aaa bb bb cz", {.size = 100, .characters = 4});
  EXPECT_TRUE(vocabulary.find("a"));
  EXPECT_TRUE(vocabulary.find("##b"));
  EXPECT_FALSE(vocabulary.find("##z"));
  EXPECT_THROW(build_vocabulary("a", {.size = 4}), UsageError);
  EXPECT_EQ(build_vocabulary("abc", {.size = 5}).size(), 5);
  EXPECT_EQ(build_vocabulary("", {}).size(), 5);
}

TEST(BuildVocabulary, OverlappingPairsAreCountedOnce) {
  const Vocabulary vocabulary = build_vocabulary("aaaaa aaaaa", {.size = 100});
  const WordPiece pieces{vocabulary};
  EXPECT_THAT(pieces.pieces("aaaaa"), ElementsAre("aaaaa"));
}

// The text that comes with Tidemark: every word is known, and the result is always the same.
TEST(BuildVocabulary, OfTheBundledText) {
  const std::string text = read_text(TIDEMARK_TEXT);
  const Vocabulary vocabulary = build_vocabulary(text, {.size = 8192});
  EXPECT_EQ(vocabulary.size(), 8192);
  EXPECT_EQ(pieces_of(build_vocabulary(text, {.size = 8192})), pieces_of(vocabulary));
  const WordPiece pieces(vocabulary);
  EXPECT_THAT(pieces.pieces("The hackers' programs"),
              ElementsAre("the", "hackers", "'", "programs"));
  int64_t tokens = 0;
  for (const int32_t id : pieces.ids(text)) {
    ASSERT_NE(id, vocabulary.unknown());
    ++tokens;
  }
  EXPECT_GT(tokens, 300000);
  EXPECT_LT(tokens, 400000);
}

}  // namespace
}  // namespace tidemark
