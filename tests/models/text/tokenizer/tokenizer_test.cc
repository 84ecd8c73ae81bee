#include "models/text/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "models/text/tokenizer/subword_model.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"
#include "tests/models/text/tokenizer/golden_tokenizers.h"

namespace tidemark {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// {a, b, ab, x, <e>} with the merge a b, and <e> special.
json small_tokenizer() {
  return json::parse(R"({
    "added_tokens": [{"id": 4, "content": "<e>", "special": true}],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "x": 3}, "merges": ["a b"]}})");
}

Tokenizer parse(const json& from) { return Tokenizer::parse("t.json", from.dump()); }

std::string error_of(const std::string& text) {
  try {
    Tokenizer::parse("t.json", text);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tokenizer, ReadsASmallOne) {
  const Tokenizer tokenizer = parse(small_tokenizer());
  EXPECT_THAT(tokenizer.encode("abxa<e>b"), ElementsAre(2, 3, 0, 4, 1));
  EXPECT_THAT(tokenizer.encode("a<e>", {.find_special_tokens = false}), ElementsAre(0));
  EXPECT_EQ(tokenizer.vocabulary_size(), 5);
  EXPECT_EQ(tokenizer.find("ab"), 2);
  EXPECT_EQ(tokenizer.find("<e>"), 4);
  EXPECT_EQ(tokenizer.find("?"), std::nullopt);
  EXPECT_EQ(tokenizer.piece(4), "<e>");
  EXPECT_EQ(tokenizer.piece(5), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(4));
  EXPECT_FALSE(tokenizer.is_special(0));
}

TEST(Tokenizer, DecodesToPiecesWithSpacesWithoutADecoder) {
  const Tokenizer tokenizer = parse(small_tokenizer());
  const std::vector<int32_t> ids{2, 4, 0, 99, -1};
  EXPECT_EQ(tokenizer.decode(ids), "ab a");
  EXPECT_EQ(tokenizer.decode(ids, false), "ab <e> a");
  EXPECT_EQ(tokenizer.decode({}), "");
}

TEST(Tokenizer, ReplacesWhatIsNotUtf8) {
  const Tokenizer tokenizer = testing::golden_tokenizer("gpt2");
  EXPECT_EQ(tokenizer.encode("a\xFF\xE4\xBD z"), tokenizer.encode("a\uFFFD\uFFFD z"));
}

TEST(Tokenizer, StreamsACharacterWhenAllItsBytesAreThere) {
  const Tokenizer tokenizer = testing::golden_tokenizer("smollm2");
  const std::vector<int32_t> ids = tokenizer.encode("a\u20AC\U0001F600");
  ASSERT_GT(ids.size(), 3u) << "the characters are one piece each, which tests nothing";
  TokenStream stream(tokenizer);
  std::string text;
  for (size_t i = 0; i + 1 < ids.size(); ++i) text += stream.add(ids[i]);
  EXPECT_EQ(text, "a\u20AC");
  EXPECT_EQ(stream.add(ids.back()), "\U0001F600");
  EXPECT_EQ(stream.end(), "");

  TokenStream cut(tokenizer);
  text.clear();
  for (size_t i = 0; i + 1 < ids.size(); ++i) text += cut.add(ids[i]);
  EXPECT_EQ(cut.end(), "\uFFFD") << "the rest of a character that never came";
}

TEST(Tokenizer, DamagedJsonHasAPlace) {
  const std::string text = small_tokenizer().dump();
  for (const size_t size : {size_t{0}, size_t{1}, text.size() / 2, text.size() - 1}) {
    EXPECT_THAT(error_of(text.substr(0, size)), HasSubstr("not JSON")) << size;
    EXPECT_THAT(error_of(text.substr(0, size)), HasSubstr("t.json")) << size;
  }
  EXPECT_THAT(error_of("[]"), HasSubstr("the file is not an object"));
  EXPECT_THAT(error_of(std::string(100, '[')), HasSubstr("nested"));
}

struct Damage {
  const char* patch;  // JSON merge patch on small_tokenizer(), or a whole value behind '='
  const char* error;
};

TEST(Tokenizer, ContradictionsHaveAPlace) {
  const Damage damages[] = {
      {R"({"model": null})", "model is missing"},
      {R"({"model": {"type": "Unigram"}})", "model has the type 'Unigram'"},
      {R"({"model": {"vocab": null}})", "model.vocab is missing"},
      {R"({"model": {"vocab": [1]}})", "model.vocab is not an object"},
      {R"({"model": {"vocab": {"a": -1}}})", "model.vocab['a'] is not a number from 0"},
      {R"({"model": {"vocab": {"a": 2147483648}}})", "model.vocab['a'] is not a number from 0"},
      {R"({"model": {"vocab": {"a": 1.5}}})", "model.vocab['a'] is not a number from 0"},
      {R"({"model": {"vocab": {"c": 1}}})", "model.vocab['c'] has the id 1, like 'b'"},
      {R"({"model": {"merges": null}})", "model.merges is missing"},
      {R"({"model": {"merges": ["a b", "a c"]}})", "model.merges[1] needs 'c'"},
      {R"({"model": {"merges": ["b a"]}})", "model.merges[0] needs 'ba'"},
      {R"({"model": {"merges": ["ab"]}})", "model.merges[0] is 'ab', not two pieces"},
      {R"({"model": {"merges": ["a b c"]}})", "model.merges[0] is 'a b c', not two pieces"},
      {R"({"model": {"merges": [["a"]]}})", "model.merges[0] has not two pieces"},
      {R"({"model": {"merges": [["a", 1]]}})", "model.merges[0][1] is not a string"},
      {R"({"model": {"merges": [7]}})", "model.merges[0] is not a string"},
      {R"({"model": {"unk_token": "?"}})", "model.unk_token is '?'"},
      {R"({"model": {"dropout": 0.1}})", "model.dropout"},
      {R"({"model": {"continuing_subword_prefix": "##"}})",
       "model.merges[0] continues without"},
      {R"({"model": {"type": "WordPiece"}})", "model has no unk_token"},
      {R"({"added_tokens": [{"id": 4}]})", "added_tokens[0].content is missing"},
      {R"({"added_tokens": [{"id": 4, "content": ""}]})", "added_tokens[0] has no content"},
      {R"({"added_tokens": [{"id": 1e10, "content": "c"}]})", "added_tokens[0].id"},
      {R"({"added_tokens": [{"id": 3, "content": "c"}]})", "'c' the id 3, which 'x' has"},
      {R"({"added_tokens": [{"id": 3, "content": "a"}]})", "'a' the id 3, but the model 0"},
      {R"({"added_tokens": [{"id": 5, "content": "c"}, {"id": 6, "content": "c"}]})",
       "added_tokens[1] gives 'c' the id 6 as well"},
      {R"({"normalizer": {"type": "Precompiled"}})", "normalizer has the type 'Precompiled'"},
      {R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Nmt"}]}})",
       "normalizer.normalizers[0] has the type 'Nmt'"},
      {R"({"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": ""}})",
       "normalizer.pattern is an empty string"},
      {R"({"pre_tokenizer": {"type": "UnicodeScripts"}})", "pre_tokenizer has the type"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior":
          "Isolated"}})",
       "pre_tokenizer.pattern.Regex: not a regular expression"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[a&&b]"}, "behavior":
          "Isolated"}})",
       "an intersection of classes are not supported"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "x"}})",
       "pre_tokenizer.behavior is 'x'"},
      {R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "ab"}})",
       "pre_tokenizer.replacement is not one character"},
      {R"({"post_processor": {"type": "BertProcessing", "cls": ["a", 0], "sep": ["c", 9]}})",
       "post_processor.sep[1] is 9, which is no token"},
      {R"({"post_processor": {"type": "TemplateProcessing", "single":
          [{"SpecialToken": {"id": "q"}}], "pair": [], "special_tokens": {}}})",
       "post_processor.single[0] names 'q'"},
      {R"({"post_processor": {"type": "TemplateProcessing", "single":
          [{"Sequence": {"id": "B"}}], "pair": [], "special_tokens": {}}})",
       "post_processor.single[0] names the sequence 'B'"},
      {R"({"decoder": {"type": "CTC"}})", "decoder has the type 'CTC'"},
      {R"({"decoder": {"type": "Strip", "content": "", "start": 1}})",
       "decoder.content is not one character"},
      {R"({"decoder": 3})", "decoder is not an object"},
  };
  for (const Damage& damage : damages) {
    json damaged = small_tokenizer();
    damaged.merge_patch(json::parse(damage.patch));
    EXPECT_THAT(error_of(damaged.dump()), HasSubstr(damage.error)) << damage.patch;
  }
}

TEST(Tokenizer, AHostileRegexEndsInAnError) {
  json hostile = small_tokenizer();
  hostile["pre_tokenizer"] = json::parse(
      R"({"type": "Split", "pattern": {"Regex": "(a+)+[!?]"}, "behavior": "Isolated"})");
  const Tokenizer tokenizer = parse(hostile);
  EXPECT_THAT(tokenizer.encode("aab"), ElementsAre(0, 2));
  try {
    tokenizer.encode(std::string(10000, 'a'));
    FAIL() << "it ended";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("pre_tokenizer.pattern.Regex: "));
    EXPECT_THAT(error.what(), HasSubstr("10000 bytes"));
  }
}

TEST(Tokenizer, ALongTextOfHonestWordsIsNoHostileOne) {
  const Tokenizer tokenizer = testing::golden_tokenizer("llama3");
  for (const char* part : {" ", "\n", "a", " \n", "7", "\u4F60"}) {
    std::string text;
    while (text.size() < 200000) text += part;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, UnknownCharactersVanishBecomeOneOrEachItsOwn) {
  json from = small_tokenizer();
  EXPECT_THAT(parse(from).encode("a??b"), ElementsAre(2)) << "without an unknown piece";
  from["model"]["unk_token"] = "x";
  EXPECT_THAT(parse(from).encode("a??b"), ElementsAre(0, 3, 3, 1));
  from["model"]["fuse_unk"] = true;
  EXPECT_THAT(parse(from).encode("a??b"), ElementsAre(0, 3, 1));
}

TEST(AddedTokens, TheLongestAtTheLeftmostPlaceWins) {
  json from = small_tokenizer();
  from["added_tokens"] =
      json::parse(R"([{"id": 5, "content": "aa"}, {"id": 6, "content": "aab"},
                                         {"id": 7, "content": "abx"}])");
  EXPECT_THAT(parse(from).encode("aabxaax"), ElementsAre(6, 3, 5, 3));
}

TEST(AddedTokens, ASingleWordStandsAlone) {
  json from = small_tokenizer();
  from["added_tokens"] = json::parse(R"([{"id": 5, "content": "xx", "single_word": true}])");
  EXPECT_THAT(parse(from).encode("xx axx xxa,xx"), ElementsAre(5, 0, 3, 3, 3, 3, 0, 5));
}

TEST(AddedTokens, OneMayCoverAnother) {
  json from = small_tokenizer();
  from["added_tokens"] = json::parse(R"([{"id": 5, "content": "R", "rstrip": true},
                                         {"id": 6, "content": " "}])");
  EXPECT_THAT(parse(from).encode("R   b"), ElementsAre(5, 6, 6, 6, 1));
}

// A few bytes of a file that would ask for all memory, all stack or all time.
TEST(Tokenizer, HostileSizesAreRefused) {
  const auto refused = [](const char* key, const json& value, const char* error) {
    json from = small_tokenizer();
    from[key] = value;
    EXPECT_THAT(error_of(from.dump()), HasSubstr(error)) << key;
  };
  const json grow = json::parse(
      R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"})");
  refused("normalizer", {{"type", "Sequence"}, {"normalizers", {grow, grow, grow, grow}}},
          "1024 times");
  refused("normalizer", {{"type", "Prepend"}, {"prepend", std::string(2000, 'a')}},
          "1024 times");
  refused("decoder", {{"type", "Sequence"}, {"decoders", {grow, grow, grow, grow}}},
          "1024 times");
  refused("decoder", {{"type", "Sequence"}, {"decoders", json(1000, json{{"type", "Fuse"}})}},
          "64 stages");
  const json first = json::parse(R"({"Sequence": {"id": "A", "type_id": 0}})");
  refused("post_processor",
          {{"type", "TemplateProcessing"},
           {"single", {first, first}},
           {"pair", json::array()},
           {"special_tokens", json::object()}},
          "again");
  json from = small_tokenizer();
  from["model"]["continuing_subword_prefix"] = std::string(100, '#');
  EXPECT_THAT(error_of(from.dump()), HasSubstr("64 bytes"));
  from["model"] = json::parse(R"({"type": "WordPiece", "unk_token": "a", "vocab": {"a": 0},
                                  "max_input_chars_per_word": 1000000})");
  EXPECT_THAT(error_of(from.dump()), HasSubstr("above 1000"));
}

TEST(AddedTokens, TakeWhiteSpaceAlong) {
  json from = small_tokenizer();
  from["model"]["vocab"][" "] = 8;
  from["added_tokens"] = json::parse(R"([{"id": 5, "content": "L", "lstrip": true},
                                         {"id": 6, "content": "R", "rstrip": true}])");
  EXPECT_THAT(parse(from).encode(" a \u3000L R  L b"), ElementsAre(8, 0, 5, 8, 6, 5, 8, 1));
}

TEST(Metaspace, TheFirstSchemeMarksTheBeginningOfTheTextAlone) {
  json from = small_tokenizer();
  from["model"]["vocab"]["_"] = 8;
  from["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "WhitespaceSplit"},
      {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]})");
  EXPECT_THAT(parse(from).encode("a b"), ElementsAre(8, 0, 1));
  EXPECT_THAT(parse(from).encode("<e>a b"), ElementsAre(4, 0, 1));
  from["pre_tokenizer"]["pretokenizers"][1]["prepend_scheme"] = "always";
  EXPECT_THAT(parse(from).encode("<e>a b"), ElementsAre(4, 8, 0, 8, 1));
}

// The plain definition of byte-pair encoding, in quadratic time.
std::vector<int32_t> merge_plainly(const std::vector<std::pair<int32_t, int32_t>>& merges,
                                   std::vector<int32_t> ids) {
  for (;;) {
    size_t best = merges.size();
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (merges[rank] == std::pair(ids[i], ids[i + 1]))
          std::tie(best, at) = std::pair(rank, i);
      }
    }
    if (best == merges.size()) return ids;
    ids[at] = static_cast<int32_t>(best) + 3;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(PairMerges, EqualsThePlainDefinition) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    tokenizers::PieceTable pieces;
    for (int32_t i = 0; i < 3; ++i) pieces.add(std::string(1, static_cast<char>('a' + i)), i);
    tokenizers::PairMerges model(pieces, {});
    std::vector<std::pair<int32_t, int32_t>> merges;
    for (int tries = 0; tries < 12; ++tries) {
      const auto count = static_cast<uint32_t>(merges.size() + 3);
      const auto left = static_cast<int32_t>(random() % count);
      const auto right = static_cast<int32_t>(random() % count);
      const auto joined = static_cast<int32_t>(count);
      if (!pieces.add(*pieces.piece(left) + *pieces.piece(right), joined)) continue;
      model.add_merge(left, right, static_cast<int64_t>(merges.size()), joined);
      merges.emplace_back(left, right);
    }
    std::string word;
    std::vector<int32_t> characters;
    for (unsigned length = 1 + random() % 60; length > 0; --length) {
      characters.push_back(static_cast<int32_t>(random() % 3));
      word += static_cast<char>('a' + characters.back());
    }
    std::vector<int32_t> ids;
    model.split(word, ids);
    EXPECT_EQ(ids, merge_plainly(merges, characters)) << word;
  }
}

}  // namespace
}  // namespace tidemark
