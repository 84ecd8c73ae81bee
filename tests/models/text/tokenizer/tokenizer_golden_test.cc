// Tokenizers of every kind compute what Hugging Face's do.
#include <gtest/gtest.h>

#include <random>

#include "models/text/unicode.h"
#include "tests/models/text/tokenizer/golden_tokenizers.h"

namespace tidemark {
namespace {

using testing::golden_case;
using testing::golden_names;
using testing::golden_tokenizer;
using testing::golden_tokenizers;
using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;

class GoldenTokenizer : public ::testing::TestWithParam<std::string> {
 protected:
  const nlohmann::json& wanted = golden_case(GetParam());
  const Tokenizer tokenizer = golden_tokenizer(GetParam());
  const Texts texts = golden_tokenizers()["texts"];
};

TEST_P(GoldenTokenizer, EncodesAsHuggingFace) {
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i]), wanted["ids"][i].get<Ids>()) << texts[i];
    EXPECT_EQ(tokenizer.encode(texts[i], {.add_special_tokens = false}),
              wanted["plain_ids"][i].get<Ids>())
        << texts[i];
  }
}

TEST_P(GoldenTokenizer, EncodesPairsAsHuggingFace) {
  const auto pairs =
      golden_tokenizers()["pairs"].get<std::vector<std::pair<std::string, std::string>>>();
  for (size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(tokenizer.encode_pair(pairs[i].first, pairs[i].second),
              wanted["pair_ids"][i].get<Ids>())
        << pairs[i].first;
  }
}

TEST_P(GoldenTokenizer, DecodesAsHuggingFace) {
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto ids = wanted["ids"][i].get<Ids>();
    EXPECT_EQ(tokenizer.decode(ids), wanted["decoded"][i].get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids, false), wanted["decoded_all"][i].get<std::string>());
  }
}

TEST_P(GoldenTokenizer, StreamsWhatItDecodes) {
  std::mt19937 random(1);
  const auto count = static_cast<int32_t>(tokenizer.vocabulary_size());
  std::uniform_int_distribution<int32_t> any(-1, count);
  for (int round = 0; round < 200; ++round) {
    Ids ids;
    for (int i = 0; i < round % 40; ++i) ids.push_back(any(random));
    TokenStream stream(tokenizer);
    std::string text;
    for (const int32_t id : ids) {
      const std::string part = stream.add(id);
      EXPECT_TRUE(is_utf8(part));
      text += part;
    }
    text += stream.end();
    EXPECT_EQ(text, tokenizer.decode(ids));
  }
}

std::string random_text(std::mt19937& random) {
  constexpr char32_t kLimits[] = {0x80, 0x80, 0x800, 0x3000, 0xD800, 0x20000, 0x110000};
  std::string text;
  for (unsigned length = random() % 40; length > 0; --length) {
    const char32_t code = random() % kLimits[random() % std::size(kLimits)];
    if (code >= 0xD800 && code < 0xE000) continue;
    append_utf8(text, code);
    if (random() % 4 == 0) text += " \n\t\r"[random() % 4];
  }
  return text;
}

// Those that lose nothing.
TEST(ByteLevelTokenizer, DecodesWhatItEncodes) {
  std::mt19937 random(2);
  for (const char* name : {"gpt2", "llama3", "smollm2"}) {
    const Tokenizer tokenizer = golden_tokenizer(name);
    for (int round = 0; round < 500; ++round) {
      const std::string text = random_text(random);
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.add_special_tokens = false}), false),
                text)
          << name;
    }
  }
}

TEST(SentencePieceTokenizer, DecodesWhatItEncodes) {
  std::mt19937 random(3);
  const Tokenizer tokenizer = golden_tokenizer("llama2");
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_text(random);
    // U+2581 is a space to it.
    if (text.find("\u2581") != std::string::npos) continue;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTokenizer, ::testing::ValuesIn(golden_names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace tidemark
