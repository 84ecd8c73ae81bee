#include "models/checkpoint/weight_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "models/checkpoint/safetensors.h"
#include "runtime/core/errors.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempFolder;

constexpr const char* kIndex = "model.safetensors.index.json";

class WeightFileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + '/' + name; }
  std::string write(const std::string& name, const std::string& text) {
    return folder_.write(name, {text.begin(), text.end()});
  }
  // A safetensors file of tensors with one element, the given number.
  void write_shard(const std::string& name, const std::map<std::string, float>& tensors) {
    std::vector<SafetensorsSpec> specs;
    for (const auto& [tensor, value] : tensors) specs.push_back({tensor, DType::kFloat32, {1}});
    SafetensorsWriter writer(path(name), specs, {});
    for (const auto& [tensor, value] : tensors) {
      writer.write(std::as_bytes(std::span(&value, 1)));
    }
    writer.commit();
  }
  void write_index(const std::string& map) {
    write(kIndex, R"({"metadata": {"total_size": 16}, "weight_map": )" + map + '}');
  }
  std::string complaint(const std::string& name = kIndex) {
    try {
      open_weights(path(name));
    } catch (const DataError& error) {
      return error.what();
    }
    ADD_FAILURE() << "no DataError";
    return "";
  }
  static std::vector<std::string> names(const WeightSource& source) {
    std::vector<std::string> all;
    for (const WeightEntry& entry : source.entries()) all.push_back(entry.name);
    return all;
  }
  static float value(WeightSource& source, const std::string& name) {
    float number = 0;
    source.read(*source.find(name), std::as_writable_bytes(std::span(&number, 1)));
    return number;
  }

  TempFolder folder_;
};

using ShardsTest = WeightFileTest;

TEST_F(ShardsTest, AreReadByTheIndex) {
  write_shard("1.safetensors", {{"a", 1}, {"c", 3}, {"unlisted", 9}});
  write_shard("2.safetensors", {{"b", 2}});
  write_index(R"({"a": "1.safetensors", "b": "2.safetensors", "c": "1.safetensors"})");
  for (const std::string& from : {path(kIndex), folder_.path()}) {
    const auto source = open_weights(from);
    EXPECT_EQ(source->path(), path(kIndex));
    EXPECT_THAT(names(*source), ElementsAre("a", "c", "b"));
    EXPECT_EQ(value(*source, "a"), 1);
    EXPECT_EQ(value(*source, "b"), 2);
    EXPECT_EQ(value(*source, "c"), 3);
    EXPECT_EQ(source->find("unlisted"), nullptr);
    try {
      source->fail(*source->find("b"), "a fault");
    } catch (const DataError& error) {
      EXPECT_EQ(error.file(), path("2.safetensors"));
    }
  }
}

TEST_F(ShardsTest, AreNotHeldOpen) {
  std::string map;
  for (int i = 0; i < 200; ++i) {
    const std::string name = std::to_string(i);
    write_shard(name + ".safetensors", {{name, static_cast<float>(i)}});
    map += (map.empty() ? "{\"" : ", \"") + name + "\": \"" + name + ".safetensors\"";
  }
  write_index(map + '}');
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_files();
  const auto source = open_weights(path(kIndex));
  for (int i = 0; i < 200; i += 7) EXPECT_EQ(value(*source, std::to_string(i)), i);
  EXPECT_LE(open_files(), before + 1);
}

TEST_F(ShardsTest, ThatDoNotFitTheIndexAreErrors) {
  write_shard("1.safetensors", {{"a", 1}});
  write_shard("2.safetensors", {{"a", 1}, {"b", 2}});
  write_index(R"({"a": "1.safetensors", "b": "3.safetensors"})");
  EXPECT_THAT(complaint(), AllOf(HasSubstr(kIndex), HasSubstr("3.safetensors is missing")));
  write_index(R"({"b": "1.safetensors"})");
  EXPECT_THAT(complaint(), HasSubstr("tensor 'b': is not in its shard 1.safetensors"));
  write_index(R"({"a": "1.safetensors", "b": "2.safetensors"})");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("2.safetensors, byte"),
                                 HasSubstr("tensor 'a': is in two shards")));
  write("2.safetensors", "nonsense");
  EXPECT_THAT(complaint(), HasSubstr("2.safetensors, byte"));
}

TEST_F(ShardsTest, ThatChangeAreErrors) {
  write_shard("1.safetensors", {{"a", 1}});
  write_shard("2.safetensors", {{"b", 1}});
  write_index(R"({"a": "1.safetensors", "b": "2.safetensors"})");
  const auto source = open_weights(path(kIndex));
  write_shard("1.safetensors", {{"b", 2}});
  EXPECT_THAT([&] { value(*source, "a"); },
              ::testing::ThrowsMessage<DataError>(HasSubstr("has changed")));
  fs::remove(path("1.safetensors"));
  EXPECT_THROW(value(*source, "a"), DataError);
}

TEST_F(ShardsTest, IndexesAreNotTrusted) {
  write_shard("1.safetensors", {{"a", 1}});
  for (const char* shard : {"../1.safetensors", "/1.safetensors", "a/1.safetensors", "", ".",
                            "..", "..\\\\1.safetensors", "1.safetensors\\u0000"}) {
    write_index(R"({"a": ")" + std::string(shard) + R"("})");
    EXPECT_THAT(complaint(), HasSubstr("tensor 'a': its shard is '")) << shard;
  }
  write_index(R"({"a": "1.safetensors", "a": "1.safetensors"})");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("byte"), HasSubstr("'a' appears twice")));
  write_index(R"({"a": 1})");
  EXPECT_THAT(complaint(), HasSubstr("tensor 'a': its shard is no text"));
  write_index("[]");
  EXPECT_THAT(complaint(), HasSubstr("no object 'weight_map'"));
  for (const char* text : {"", "[]", "{}", "{\"weight_map\": {", "1"}) {
    write(kIndex, text);
    EXPECT_THAT(complaint(), HasSubstr(kIndex)) << text;
  }
}

TEST_F(WeightFileTest, AFolderHasOneFileOrAnIndex) {
  EXPECT_THAT(complaint(""),
              HasSubstr("neither model.safetensors nor model.safetensors.index"));
  write("pytorch_model.bin", "PK\x03\x04");
  EXPECT_THAT(complaint(""), HasSubstr("save_file("));
  write_shard("1.safetensors", {{"a", 1}});
  write_index(R"({"a": "1.safetensors"})");
  EXPECT_THAT(names(*open_weights(folder_.path())), ElementsAre("a"));
  write_shard("model.safetensors", {{"b", 1}});
  EXPECT_THAT(names(*open_weights(folder_.path())), ElementsAre("b"));
}

TEST_F(WeightFileTest, OtherFilesAreRefused) {
  EXPECT_THAT(complaint("none"), HasSubstr("cannot be read"));
  write("a", "");
  EXPECT_THAT(complaint("a"), HasSubstr("truncated"));
  write("a", "\x80\x02}");
  EXPECT_THAT(complaint("a"), HasSubstr("truncated"));
  write("a", "\x80\x02}q");
  EXPECT_THAT(complaint("a"), HasSubstr("save_file("));
}

}  // namespace
}  // namespace tidemark
