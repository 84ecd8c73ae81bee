#include "models/text/tuning/tuning_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/core/errors.h"
#include "tests/models/text/tuning/tuning_files.h"

namespace tidemark {
namespace {

using Form = TuningData::Form;
using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::said;
using testing::small_model;

class TuningDataTest : public ::testing::Test {
 protected:
  TuningData open(const std::string& text, const TuningDataOptions& options = {},
                  const std::string& name = "a.jsonl") {
    return TuningData(folder_.write(name, bytes_of(text)), model_, options);
  }
  std::string complaint(const std::string& text, const TuningDataOptions& options = {},
                        const std::string& name = "a.jsonl") {
    try {
      open(text, options, name);
    } catch (const DataError& error) {
      EXPECT_THAT(error.file(), EndsWith(name));
      EXPECT_LE(error.offset(), static_cast<int64_t>(text.size()));
      return error.what();
    }
    ADD_FAILURE() << "no DataError";
    return "";
  }
  std::vector<int32_t> ids(const std::string& text) const {
    return model_.tokenizer.encode(text, {.find_special_tokens = false});
  }

  ModelTokenizer model_ = small_model();
  testing::TempFolder folder_;
};

constexpr const char* kChat =
    R"({"source": [[1]], "messages": [{"role": "user", "content": "Hi"},)"
    R"( {"role": "assistant", "content": "Ho"}]})";

TEST_F(TuningDataTest, Messages) {
  TuningData data = open(std::string(kChat) + '\n' + kChat);
  EXPECT_EQ(data.form(), Form::kMessages);
  ASSERT_EQ(data.size(), 2);
  const TuningExample example = data.example(1);
  EXPECT_EQ(said(model_, example), "|Ho<|im_end|>|");
  EXPECT_EQ(model_.tokenizer.decode(example.ids, false),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHo<|im_end|>\n");
  const auto length = static_cast<int64_t>(example.ids.size());
  EXPECT_EQ(data.length(1), length);
  EXPECT_EQ(data.tokens(), 2 * length);
  EXPECT_EQ(data.counted(), 2 * std::count(example.counts.begin(), example.counts.end(), true));
}

TEST_F(TuningDataTest, SaysHowFarItIs) {
  for (const char* const name : {"a.jsonl", "a.txt"}) {
    std::vector<double> shares;
    std::string text;
    for (int i = 0; i < 200; ++i) text += std::string(kChat) + '\n';
    TuningData data =
        open(text, {.progress = [&](double share) { shares.push_back(share); }}, name);
    EXPECT_GT(shares.size(), 4U);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_GT(shares.front(), 0);
    EXPECT_EQ(shares.back(), 1);
    const size_t calls = shares.size();
    (void)data.example(0);
    EXPECT_EQ(shares.size(), calls) << "only while it is opened";
  }
}

TEST_F(TuningDataTest, Completions) {
  TuningData data = open(R"({"completion": " b <|im_end|>", "prompt": "a<|endoftext|>"})");
  EXPECT_EQ(data.form(), Form::kCompletion);
  const TuningExample example = data.example(0);
  EXPECT_EQ(said(model_, example), "| b <|im_end|><|endoftext|>");
  EXPECT_EQ(std::count(example.ids.begin(), example.ids.end(), 0), 1) << "the end alone";
  EXPECT_EQ(std::count(example.ids.begin(), example.ids.end(), 2), 0);
  std::vector<int32_t> wanted = ids("a<|endoftext|> b <|im_end|>");
  wanted.push_back(0);
  EXPECT_EQ(example.ids, wanted);
}

TEST_F(TuningDataTest, TextsHaveTheTokensAroundThem) {
  model_.begin_of_text = 1;
  TuningData data = open(R"({"text": "abc"})");
  EXPECT_EQ(data.form(), Form::kText);
  const TuningExample example = data.example(0);
  EXPECT_EQ(example.ids.front(), 1);
  EXPECT_EQ(said(model_, example), "|abc<|endoftext|>");
}

TEST_F(TuningDataTest, LinesMayEndAsTheyLike) {
  const std::string a = R"({"text": "first"})", b = R"({"text": "second"})";
  const uint64_t wanted = open(a + '\n' + b + '\n').fingerprint();
  for (const std::string& text :
       {a + '\n' + b, a + "\r\n" + b + "\r\n", "\xEF\xBB\xBF" + a + '\n' + b,
        "\n \r\n" + a + "\n\n\t\n" + b + "\n\n"}) {
    TuningData data = open(text);
    EXPECT_EQ(data.fingerprint(), wanted) << text;
    EXPECT_EQ(said(model_, data.example(1)), "second<|endoftext|>");
    EXPECT_EQ(said(model_, data.example(0)), "first<|endoftext|>");
  }
  EXPECT_NE(open(b + '\n' + a).fingerprint(), wanted);
  const testing::ByteVector packed = testing::gzip(bytes_of(a + '\n' + b));
  TuningData data(folder_.write("a.gz", packed), model_, {});
  EXPECT_EQ(data.fingerprint(), wanted);
  EXPECT_EQ(said(model_, data.example(1)), "second<|endoftext|>");
}

// Longer than what is read at once, so that lines begin and end within it.
TEST_F(TuningDataTest, LongFilesInAnyOrder) {
  std::string text;
  std::vector<std::string> contents;
  for (int i = 0; i < 400; ++i) {
    contents.push_back(std::to_string(i) + std::string(static_cast<size_t>(i * 7 % 911), 'a'));
    text += R"({"text": ")" + contents.back() + "\"}\n";
  }
  ASSERT_GT(text.size(), 2u << 16);
  TuningData data = open(text);
  ASSERT_EQ(data.size(), 400);
  for (int64_t i = 0; i < 400; ++i) {
    const int64_t at = i * 171 % 400;
    EXPECT_EQ(said(model_, data.example(at)),
              contents[static_cast<size_t>(at)] + "<|endoftext|>");
  }
}

TEST_F(TuningDataTest, LongExamplesAreCut) {
  const std::string text = R"({"prompt": "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "completion": "b"})"
                           "\n"
                           R"({"prompt": "0", "completion": "123456789"})"
                           "\n"
                           R"({"prompt": "0", "completion": "1"})";
  TuningData data = open(text, {.longest = 4});
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.skipped(), 1) << "nothing to learn remains";
  EXPECT_EQ(data.truncated(), 1);
  EXPECT_EQ(said(model_, data.example(0)), "|123");
  EXPECT_EQ(said(model_, data.example(1)), "|1<|endoftext|>");
  EXPECT_EQ(data.tokens(), 7);
  EXPECT_EQ(data.counted(), 5);
  EXPECT_THAT(complaint(text.substr(0, text.find('\n')), {.longest = 4}),
              HasSubstr("no example with a token to learn among its first 4"));
}

TEST_F(TuningDataTest, PlainTextIsCutIntoWindows) {
  std::string text = "\xEF\xBB\xBF";
  for (int i = 0; i < 15000; ++i)
    text += "line " + std::to_string(i) + (i % 50 ? "\n" : "\n\n");
  ASSERT_GT(text.size(), 2u << 16);
  TuningData data = open(text, {.longest = 1000}, "a.txt");
  EXPECT_EQ(data.form(), Form::kPlainText);
  std::vector<int32_t> read;
  for (int64_t i = 0; i < data.size(); ++i) {
    const TuningExample example = data.example(i);
    ASSERT_EQ(data.length(i), static_cast<int64_t>(example.ids.size()));
    EXPECT_TRUE(data.length(i) == 1000 || i + 1 == data.size());
    read.insert(read.end(), example.ids.begin(), example.ids.end());
  }
  EXPECT_EQ(model_.tokenizer.decode(read, false), text.substr(3));
  EXPECT_EQ(data.tokens(), static_cast<int64_t>(read.size()));
  EXPECT_EQ(data.counted(), data.tokens() - data.size());
  EXPECT_EQ(open(text, {.longest = 1000}, "other").size(), data.size());
  EXPECT_NE(open(text, {.longest = 999}, "a.txt").fingerprint(), data.fingerprint());
}

TEST_F(TuningDataTest, PlainTextWithoutLines) {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += "\u20AC";
  TuningData data = open(text, {.longest = 1000}, "a.txt");
  std::vector<int32_t> read;
  for (int64_t i = 0; i < data.size(); ++i) {
    const TuningExample example = data.example(i);
    read.insert(read.end(), example.ids.begin(), example.ids.end());
  }
  EXPECT_TRUE(model_.tokenizer.decode(read, false) == text) << "no character is cut";
  EXPECT_EQ(ids("1234").size(), 4u);
  EXPECT_EQ(open("1234", {.longest = 3}, "a.txt").tokens(), 3) << "the fourth predicts nothing";
}

TEST_F(TuningDataTest, WhatIsWrongWithALine) {
  const std::string text = "{\"text\": \"a\"}\n\n";
  const std::pair<std::string, const char*> texts[] = {
      {"{\"text\": \"b\"", "line 3 is not JSON"},
      {"[]", "line 3 is not a JSON object"},
      {"{\"prompt\": \"b\"}", "line 3 lacks 'text'"},
      {"{\"text\": null}", "line 3 lacks 'text'"},
      {"{\"text\": 1}", "line 3 has no text in 'text'"},
      {"{\"text\": \"\"}", "line 3 has an empty 'text'"},
      {"{\"text\": \"\\ud800\"}", "line 3 is not JSON"},
      {"{\"text\": \"b\"} {}", "line 3 is not JSON"},
      {"{\"text\": \"b\", \"x\": 1e999}", "line 3 is not JSON"},
      {"{\"text\": \"b\xFF\"}", "byte 26: line 3 is not UTF-8"},
      {"{\"x\":" + std::string(40, '[') + std::string(40, ']') + '}',
       "line 3 is nested more than 16 deep"},
      {std::string(200, ' ') + "{\"text\": \"b\"}", "byte 15: line 3 is longer than 100 B"}};
  for (const auto& [line, wanted] : texts) {
    EXPECT_THAT(complaint(text + line + "\n{\"text\": \"c\"}", {.longest_line = Bytes(100)}),
                HasSubstr(wanted))
        << line;
  }
  const std::string begin = R"({"messages": )";
  const std::pair<std::string, const char*> chats[] = {
      {"1}", "line 2 has no list of messages in 'messages'"},
      {"[]}", "line 2 has no list of messages in 'messages'"},
      {"[1]}", "line 2 lacks 'messages[0].role'"},
      {R"([{"role": "user", "content": "a"}, {"content": "a"}]})",
       "line 2 lacks 'messages[1].role'"},
      {R"([{"role": "user", "content": ["a"]}]})",
       "line 2 has no text in 'messages[0].content'"},
      {R"([{"role": "tool", "content": "a"}]})",
       "line 2 has an unknown role in 'messages[0].role'"}};
  for (const auto& [line, wanted] : chats) {
    EXPECT_THAT(complaint(std::string(kChat) + '\n' + begin + line), HasSubstr(wanted)) << line;
  }
  EXPECT_THAT(complaint(R"({"prompt": "a", "completion": ""})"),
              HasSubstr("line 1 has an empty 'completion'"));
}

TEST_F(TuningDataTest, WhatIsWrongWithAFile) {
  EXPECT_THAT(complaint(""), HasSubstr("is empty"));
  EXPECT_THAT(complaint(" \n\r\n"), HasSubstr("is empty"));
  EXPECT_THAT(complaint("{\"texts\": 1}"), HasSubstr("line 1 has neither 'messages' nor"));
  EXPECT_THAT(complaint("Hello", {}, "a.json"), HasSubstr("line 1 is not JSON"));
  EXPECT_THAT(complaint("a\nb\n\xFFz", {}, "a.txt"), HasSubstr("byte 4: line 3 is not UTF-8"));
  EXPECT_THROW(open("{\"text\": \"a\"}", {.longest = 1}), UsageError);
  testing::ByteVector packed = testing::gzip(testing::ByteVector(10000, 'x'));
  const std::string path = folder_.write("a.gz", packed);
  EXPECT_THROW(TuningData(path, model_, {.unpack_limit = Bytes(9999)}), DataError);
  EXPECT_THROW(TuningData(folder_.path() + "/none", model_, {}), DataError);

  model_.chat.reset();
  model_.chat_fault = "the reason";
  EXPECT_THAT(complaint(kChat), HasSubstr("line 1 has messages, but there is no chat template "
                                          "for them: the reason"));
  model_.chat = ChatTemplate::named("mistral");
  EXPECT_THAT(complaint(R"({"messages": [{"role": "system", "content": "a"}]})"),
              HasSubstr("line 1 is no chat of this template"));
}

TEST_F(TuningDataTest, AFileThatChangesIsNoticed) {
  TuningData data = open("{\"text\": \"abc\"}\n");
  open("{\"text\": \"ab\"} \n");  // the same path, another file
  EXPECT_EQ(said(model_, data.example(0)), "abc<|endoftext|>") << "the open file remains";
  std::ofstream(data.path(), std::ios::binary) << "{\"text\": \"abc def\"}\n";
  TuningData again = open("{\"text\": \"abc\"}\n");
  std::ofstream(again.path(), std::ios::binary) << "{\"text\": \"abc 1234\"}\n";
  EXPECT_THROW(again.example(0), DataError);
  EXPECT_THROW(again.example(1), UsageError);
}

TEST_F(TuningDataTest, TheBundledChats) {
  TuningData data(TIDEMARK_CHAT "/harbour.jsonl", model_, {.longest = 256});
  EXPECT_EQ(data.form(), Form::kMessages);
  EXPECT_EQ(data.size(), 150);
  EXPECT_EQ(data.skipped() + data.truncated(), 0);
  EXPECT_EQ(said(model_, data.example(0)), "|The bow is the front of a ship. Aye.<|im_end|>|");
}

TEST_F(TuningDataTest, Split) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += "{\"text\": \"a\"}\n";
  const TuningData data = open(text);
  const auto sizes = [&](double share) {
    const auto [train, held_out] = data.split(share);
    EXPECT_EQ(train.begin, 0);
    EXPECT_EQ(train.end, held_out.begin);
    EXPECT_EQ(held_out.end, 10);
    return held_out.size();
  };
  EXPECT_EQ(sizes(0), 0);
  EXPECT_EQ(sizes(0.001), 1);
  EXPECT_EQ(sizes(0.39), 3);
  EXPECT_EQ(sizes(0.99), 9);
  EXPECT_THROW(data.split(1), UsageError);
  EXPECT_THROW(open("{\"text\": \"a\"}").split(0.1), UsageError);
}

}  // namespace
}  // namespace tidemark
