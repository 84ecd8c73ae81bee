#include "models/text/tokenizer/tokenizer_gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/text/tokenizer/tokenizer_files.h"
#include "runtime/core/errors.h"
#include "tests/models/text/tokenizer/golden_tokenizers.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

// A golden tokenizer.json as llama.cpp's converter writes it.
GgufVocabulary converted(const std::string& name, const std::string& model,
                         const std::string& pre) {
  const nlohmann::json& from = testing::golden_case(name)["tokenizer"];
  GgufVocabulary vocabulary;
  vocabulary.model = model;
  vocabulary.pre = pre;
  const auto put = [&](const std::string& piece, size_t id, int32_t type) {
    if (vocabulary.tokens.size() <= id) {
      vocabulary.tokens.resize(id + 1);
      vocabulary.token_type.resize(id + 1, 1);
      vocabulary.scores.resize(id + 1);
    }
    vocabulary.tokens[id] = piece;
    vocabulary.token_type[id] = type;
    vocabulary.scores[id] = -static_cast<float>(id);  // trained in the order of ids
  };
  for (const auto& [piece, id] : from["model"]["vocab"].items()) {
    put(piece, id, piece.size() == 6 && piece.starts_with("<0x") ? 6 : 1);
  }
  for (const auto& token : from["added_tokens"]) {
    put(token["content"], token["id"], token["special"].get<bool>() ? 3 : 4);
  }
  if (model == "llama") return vocabulary;
  for (const auto& merge : from["model"]["merges"]) {
    vocabulary.merges.push_back(merge.is_string() ? merge.get<std::string>()
                                                  : merge[0].get<std::string>() + ' ' +
                                                        merge[1].get<std::string>());
  }
  return vocabulary;
}

void expect_golden(const std::string& name, const Tokenizer& tokenizer) {
  const nlohmann::json& wanted = testing::golden_case(name);
  const auto texts = testing::golden_tokenizers()["texts"].get<std::vector<std::string>>();
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto ids = wanted["ids"][i].get<Ids>();
    EXPECT_EQ(tokenizer.encode(texts[i]), ids) << texts[i];
    EXPECT_EQ(tokenizer.decode(ids), wanted["decoded"][i].get<std::string>());
  }
  for (size_t i = 0; i < wanted["pair_ids"].size(); ++i) {
    const auto pair = testing::golden_tokenizers()["pairs"][i].get<std::vector<std::string>>();
    EXPECT_EQ(tokenizer.encode_pair(pair[0], pair[1]), wanted["pair_ids"][i].get<Ids>());
  }
}

// Also as the tokenizer.json that is written of it.
void expect_golden(const std::string& name, const GgufVocabulary& vocabulary) {
  expect_golden(name, tokenizer_from_gguf("f.gguf", vocabulary));
  const std::string text = tokenizer_json("f.gguf", vocabulary);
  expect_golden(name, Tokenizer::parse("tokenizer.json", text));
  const auto& wanted = testing::golden_case(name)["tokenizer"];
  const auto written = nlohmann::json::parse(text);
  EXPECT_EQ(written["model"]["vocab"].size(), vocabulary.tokens.size());
  EXPECT_EQ(written["normalizer"].is_null(), wanted["normalizer"].is_null());
}

TEST(GgufTokenizer, EqualsTheJsonItWasConvertedFrom) {
  expect_golden("gpt2", converted("gpt2", "gpt2", "gpt-2"));
  expect_golden("gpt2", converted("gpt2", "gpt2", "default"));
  expect_golden("smollm2", converted("smollm2", "gpt2", "smollm"));
  GgufVocabulary llama3 = converted("llama3", "gpt2", "llama-bpe");
  llama3.bos_token_id = 0;
  expect_golden("llama3", llama3);
  GgufVocabulary llama2 = converted("llama2", "llama", "");
  llama2.unknown_token_id = 0;
  llama2.bos_token_id = 1;
  expect_golden("llama2", llama2);
}

TEST(GgufTokenizer, Qwen2IsNormalized) {
  const Tokenizer tokenizer =
      tokenizer_from_gguf("f.gguf", converted("qwen2", "gpt2", "qwen2"));
  EXPECT_EQ(tokenizer.encode("e\u0301 12"), tokenizer.encode("\u00E9 12"));
  EXPECT_EQ(tokenizer.encode("e\u0301 12"),
            testing::golden_tokenizer("qwen2").encode("\u00E9 12"));
  const Tokenizer written = Tokenizer::parse(
      "tokenizer.json", tokenizer_json("f.gguf", converted("qwen2", "gpt2", "qwen2")));
  EXPECT_EQ(written.encode("e\u0301 12"), tokenizer.encode("\u00E9 12"));
}

TEST(GgufTokenizer, WritesWhatEndsATextAndRefusesWhatIsNotText) {
  GgufVocabulary vocabulary = converted("gpt2", "gpt2", "gpt-2");
  vocabulary.bos_token_id = 3;
  vocabulary.eos_token_id = 0;
  vocabulary.add_bos_token = vocabulary.add_eos_token = true;
  const Tokenizer written =
      Tokenizer::parse("tokenizer.json", tokenizer_json("f.gguf", vocabulary));
  const Tokenizer read = tokenizer_from_gguf("f.gguf", vocabulary);
  EXPECT_EQ(written.encode("a").front(), 3);
  EXPECT_EQ(written.encode("a").back(), 0);
  EXPECT_EQ(written.encode_pair("a", "b"), read.encode_pair("a", "b"));
  vocabulary.tokens[5] = "\xFF";
  EXPECT_THROW(tokenizer_json("f.gguf", vocabulary), DataError);
}

GgufVocabulary small_vocabulary() {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.tokens = {"a", "b", "ab", "<s>"};
  vocabulary.token_type = {1, 1, 1, 3};
  vocabulary.merges = {"a b"};
  vocabulary.scores = {-1, -2, 0, 0};
  vocabulary.bos_token_id = vocabulary.eos_token_id = 3;
  return vocabulary;
}

TEST(GgufTokenizer, AddsTokensAsTheFileSays) {
  GgufVocabulary vocabulary = small_vocabulary();
  EXPECT_THAT(tokenizer_from_gguf("f", vocabulary).encode("ab"), ElementsAre(2));
  vocabulary.add_bos_token = vocabulary.add_eos_token = true;
  EXPECT_THAT(tokenizer_from_gguf("f", vocabulary).encode("ab"), ElementsAre(3, 2, 3));
  vocabulary.model = "llama";
  vocabulary.add_bos_token = std::nullopt;
  vocabulary.add_space_prefix = false;
  EXPECT_THAT(tokenizer_from_gguf("f", vocabulary).encode("ab"), ElementsAre(3, 2, 3));
}

TEST(GgufTokenizer, ContradictionsNameTheKey) {
  const std::pair<void (*)(GgufVocabulary&), const char*> damages[] = {
      {[](GgufVocabulary& v) { v.model = "bert"; }, "ggml.model is 'bert'"},
      {[](GgufVocabulary& v) { v.pre = "tekken"; }, "ggml.pre is 'tekken'"},
      {[](GgufVocabulary& v) { v.tokens.clear(); }, "ggml.tokens is empty"},
      {[](GgufVocabulary& v) { v.tokens[1] = "a"; }, "ggml.tokens[1] is 'a', like token 0"},
      {[](GgufVocabulary& v) { v.token_type.pop_back(); },
       "ggml.token_type has 3 values for 4"},
      {[](GgufVocabulary& v) { v.token_type[2] = 7; }, "ggml.token_type[2] is 7"},
      {[](GgufVocabulary& v) { v.merges.push_back("b c"); }, "ggml.merges[1] needs 'c'"},
      {[](GgufVocabulary& v) { v.merges.push_back("ba"); }, "ggml.merges[1] is 'ba'"},
      {[](GgufVocabulary& v) { v.merges.push_back("b a"); }, "ggml.merges[1] needs 'ba'"},
      {[](GgufVocabulary& v) { v.bos_token_id = 4; }, "ggml.bos_token_id is 4"},
      {[](GgufVocabulary& v) { v.eos_token_id = -1; }, "ggml.eos_token_id is -1"},
      {[](GgufVocabulary& v) {
         v.bos_token_id = std::nullopt;
         v.add_bos_token = true;
       },
       "ggml.bos_token_id is missing"},
      {[](GgufVocabulary& v) {
         v.model = "llama";
         v.scores.clear();
       },
       "ggml.scores has 0 values for 4"},
      {[](GgufVocabulary& v) {
         v.model = "llama";
         v.scores[1] = std::nanf("");
       },
       "ggml.scores[1] is not a number"},
  };
  for (const auto& [damage, error] : damages) {
    GgufVocabulary vocabulary = small_vocabulary();
    damage(vocabulary);
    try {
      tokenizer_from_gguf("f.gguf", vocabulary);
      ADD_FAILURE() << error;
    } catch (const DataError& thrown) {
      EXPECT_THAT(thrown.what(), HasSubstr("f.gguf"));
      EXPECT_THAT(thrown.what(), HasSubstr(error));
    }
  }
}

}  // namespace
}  // namespace tidemark
