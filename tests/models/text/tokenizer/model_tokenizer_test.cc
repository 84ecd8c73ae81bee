#include "models/text/tokenizer/model_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "models/text/tokenizer/tokenizer_files.h"
#include "runtime/core/errors.h"
#include "tests/models/checkpoint/gguf_builder.h"
#include "tests/models/text/tokenizer/golden_tokenizers.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::ByteVector;
using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;

class ModelTokenizerTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    return folder_.write(name, ByteVector(text.begin(), text.end()));
  }
  void write_tokenizer(const std::string& name) {
    write("tokenizer.json", testing::golden_case(name)["tokenizer"].dump());
  }
  ModelTokenizer open() { return open_tokenizer(folder_.path()); }

  const json chatml_ = testing::golden_chats()["chats"][0]["template"];
  testing::TempFolder folder_;
};

TEST_F(ModelTokenizerTest, ATokenizerAlone) {
  write_tokenizer("llama3");
  const ModelTokenizer model = open();
  EXPECT_FALSE(model.chat);
  EXPECT_EQ(model.chat_fault, "");
  EXPECT_EQ(model.begin_of_text, model.tokenizer.find("<|begin|>"));
  EXPECT_FALSE(model.end_of_text);
  EXPECT_TRUE(model.stops.empty());
  EXPECT_EQ(model.pad, 0);
  EXPECT_EQ(open_tokenizer(folder_.path() + "/tokenizer.json").begin_of_text,
            model.begin_of_text);
}

TEST_F(ModelTokenizerTest, WhatTheFilesBesideItSay) {
  write_tokenizer("smollm2");
  write("tokenizer_config.json", json{{"eos_token", {{"content", "<|endoftext|>"}}},
                                      {"pad_token", "<|im_start|>"},
                                      {"bos_token", nullptr},
                                      {"chat_template", chatml_}}
                                     .dump());
  write("config.json", R"({"eos_token_id": 0})");
  write("generation_config.json", R"({"eos_token_id": [5, 7]})");
  const ModelTokenizer model = open();
  ASSERT_TRUE(model.chat);
  EXPECT_EQ(model.chat->family(), ChatTemplate::Family::kChatMl);
  EXPECT_FALSE(model.begin_of_text);
  EXPECT_EQ(model.end_of_text, 0);
  EXPECT_THAT(model.stops, ElementsAre(0, 2, 5, 7)) << "2 ends a turn";
  EXPECT_EQ(model.pad, 1);
}

TEST_F(ModelTokenizerTest, AnUnknownTemplateIsNoError) {
  write_tokenizer("smollm2");
  write("tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
  write("config.json", R"({"eos_token_id": 2})");
  const ModelTokenizer model = open();
  EXPECT_FALSE(model.chat);
  EXPECT_THAT(model.chat_fault, HasSubstr("known family"));
  EXPECT_EQ(model.end_of_text, 2);
}

TEST_F(ModelTokenizerTest, DamageIsAnError) {
  EXPECT_THROW(open(), DataError);
  write_tokenizer("smollm2");
  write("config.json", R"({"eos_token_id": [2, "x"]})");
  try {
    open();
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("config.json: eos_token_id[1] is not a number"));
  }
  write("config.json", "{");
  EXPECT_THROW(open(), DataError);
}

ByteVector array_of(GgufKind kind, uint64_t count, const ByteVector& elements) {
  ByteVector bytes;
  testing::append(bytes, kind);
  testing::append(bytes, count);
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

// The golden tokenizer "smollm2" as a GGUF file.
GgufBuilder as_gguf(const json& tokenizer) {
  std::vector<std::string> pieces(tokenizer["model"]["vocab"].size());
  for (const auto& [piece, id] : tokenizer["model"]["vocab"].items()) pieces[id] = piece;
  ByteVector tokens, types, merges;
  for (size_t i = 0; i < pieces.size(); ++i) {
    testing::append_text(tokens, pieces[i]);
    testing::append<int32_t>(types, i < 3 ? 3 : 1);
  }
  for (const auto& merge : tokenizer["model"]["merges"]) {
    testing::append_text(merges,
                         merge[0].get<std::string>() + ' ' + merge[1].get<std::string>());
  }
  GgufBuilder gguf;
  gguf.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
  gguf.value("tokenizer.ggml.tokens", GgufKind::kArray,
             array_of(GgufKind::kText, pieces.size(), tokens));
  gguf.value("tokenizer.ggml.token_type", GgufKind::kArray,
             array_of(GgufKind::kInt32, pieces.size(), types));
  gguf.value("tokenizer.ggml.merges", GgufKind::kArray,
             array_of(GgufKind::kText, tokenizer["model"]["merges"].size(), merges));
  return gguf;
}

TEST_F(ModelTokenizerTest, GgufFilesEqualTheFolder) {
  const json& golden = testing::golden_case("smollm2");
  GgufBuilder gguf = as_gguf(golden["tokenizer"]);
  gguf.size("tokenizer.ggml.eos_token_id", 2).size("tokenizer.ggml.bos_token_id", 1);
  gguf.size("tokenizer.ggml.eot_token_id", 9).size("tokenizer.ggml.padding_token_id", 4);
  gguf.text("tokenizer.chat_template", chatml_);
  const ModelTokenizer model = open_tokenizer(folder_.write("a.gguf", gguf.bytes()));
  ASSERT_TRUE(model.chat);
  EXPECT_EQ(model.end_of_text, 2);
  EXPECT_THAT(model.stops, ElementsAre(2, 9));
  EXPECT_EQ(model.pad, 4);
  EXPECT_FALSE(model.begin_of_text);
  const auto texts = testing::golden_tokenizers()["texts"];
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(model.tokenizer.encode(texts[i].get<std::string>()),
              golden["ids"][i].get<std::vector<int32_t>>());
  }
  gguf.number("tokenizer.ggml.add_bos_token", GgufKind::kBool, uint8_t{1});
  EXPECT_EQ(open_tokenizer(folder_.write("a.gguf", gguf.bytes())).begin_of_text, 1);
}

TEST_F(ModelTokenizerTest, ChatsOfGgufFilesWithoutABeginningToken) {
  GgufBuilder gguf = as_gguf(testing::golden_case("smollm2")["tokenizer"]);
  gguf.text("tokenizer.chat_template", "{{ bos_token }}" + chatml_.get<std::string>());
  const ModelTokenizer model = open_tokenizer(folder_.write("a.gguf", gguf.bytes()));
  ASSERT_TRUE(model.chat);
  const std::vector<ChatMessage> chat{{"system", "x"}};
  EXPECT_EQ(model.chat->render(chat).text, "<|im_start|>system\nx<|im_end|>\n");
}

TEST_F(ModelTokenizerTest, GgufFilesWithoutATokenizer) {
  GgufBuilder gguf;
  gguf.text("general.architecture", "llama");
  const std::string path = folder_.write("a.gguf", gguf.bytes());
  EXPECT_THROW(open_tokenizer(path), DataError);
  GgufBuilder wrong = as_gguf(testing::golden_case("smollm2")["tokenizer"]);
  wrong.number("tokenizer.ggml.eos_token_id", GgufKind::kUInt64, uint64_t{1} << 40);
  EXPECT_THROW(open_tokenizer(folder_.write("a.gguf", wrong.bytes())), DataError);
}

TEST_F(ModelTokenizerTest, GgufFilesAsFolders) {
  GgufBuilder gguf = as_gguf(testing::golden_case("smollm2")["tokenizer"]);
  gguf.size("tokenizer.ggml.bos_token_id", 1);
  gguf.size("tokenizer.ggml.eos_token_id", 0);
  gguf.size("tokenizer.ggml.eot_token_id", 7);
  gguf.size("tokenizer.ggml.padding_token_id", 5);
  gguf.text("tokenizer.chat_template", chatml_.get<std::string>());
  const std::string file = folder_.write("a.gguf", gguf.bytes());
  for (const auto& [name, text] : gguf_tokenizer_files(file)) write(name, text);
  const ModelTokenizer from = open_tokenizer(file), to = open();
  for (const auto& text : testing::golden_tokenizers()["texts"]) {
    EXPECT_EQ(to.tokenizer.encode(text.get<std::string>()),
              from.tokenizer.encode(text.get<std::string>()));
  }
  EXPECT_EQ(to.end_of_text, 0);
  EXPECT_THAT(to.stops, ElementsAre(0, 2, 7));
  EXPECT_EQ(to.pad, 5);
  const std::vector<ChatMessage> chat{{"user", "a"}, {"assistant", "b"}};
  EXPECT_EQ(to.chat->render(chat).text, from.chat->render(chat).text);
  const auto read = [&](const std::string& name) {
    return json::parse(read_text_file(folder_.path() + "/" + name));
  };
  EXPECT_EQ(read("generation_config.json"),
            (json{{"bos_token_id", 1}, {"eos_token_id", {0, 2, 7}}, {"pad_token_id", 5}}));
  EXPECT_EQ(read("tokenizer_config.json")["bos_token"], "<|im_start|>");
}

TEST_F(ModelTokenizerTest, GgufFilesThatAreNotUtf8AreNotSaved) {
  GgufBuilder gguf = as_gguf(testing::golden_case("smollm2")["tokenizer"]);
  gguf.text("tokenizer.chat_template", chatml_.get<std::string>() + "\xFF");
  const std::string file = folder_.write("a.gguf", gguf.bytes());
  EXPECT_NE(open_tokenizer(file).chat_fault, "");
  try {
    gguf_tokenizer_files(file);
    ADD_FAILURE() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("tokenizer.chat_template is not UTF-8"));
  }
}

// A real file, as transformers reads it: scripts/make_golden.py --only smollm2_tokens.
TEST_F(ModelTokenizerTest, SmolLM2) {
  const char* file = std::getenv("TIDEMARK_SMOLLM2");
  if (file == nullptr) GTEST_SKIP() << "TIDEMARK_SMOLLM2 does not name the file";
  const ModelTokenizer model = open_tokenizer(file);
  const json golden = json::parse(read_text_file(TIDEMARK_GOLDEN_DIR "/smollm2_tokens.json"));
  for (const json& each : golden["texts"]) {
    EXPECT_EQ(model.tokenizer.encode(each["text"].get<std::string>()),
              each["ids"].get<std::vector<int32_t>>())
        << each["text"];
  }
  ASSERT_TRUE(model.chat) << model.chat_fault;
  for (const json& each : golden["chats"]) {
    std::vector<ChatMessage> messages;
    for (const json& message : each["messages"]) messages.push_back({message[0], message[1]});
    EXPECT_EQ(encode_chat(model.tokenizer, model.chat->render(messages, true)).ids,
              each["ids"].get<std::vector<int32_t>>())
        << each["messages"];
  }
  EXPECT_EQ(model.end_of_text, model.tokenizer.find(golden["end"].get<std::string>()));
  EXPECT_THAT(model.stops, ElementsAre(*model.end_of_text));
  EXPECT_EQ(model.pad, 2);
  EXPECT_FALSE(model.begin_of_text);
}

}  // namespace
}  // namespace tidemark
