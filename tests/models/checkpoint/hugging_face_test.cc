#include "models/checkpoint/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "models/nn/layers.h"
#include "runtime/core/errors.h"
#include "tests/models/data/files.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

class HuggingFaceTest : public SessionTest {
 protected:
  // A file with these names, and what it gives for one of ours.
  std::string found(const std::vector<std::string>& names, const std::string& ours) {
    const std::string path =
        (std::filesystem::temp_directory_path() / "tidemark_hugging_face_test").string() +
        std::to_string(getpid());
    std::vector<NamedTensor> tensors;
    for (const std::string& name : names) {
      tensors.push_back({name, from(std::vector<float>{1}, {1})});
    }
    save_tensors(path, tensors);
    const SafetensorsFile file(path);
    std::filesystem::remove(path);
    return hugging_face_names(file)(ours).at(0);
  }
};

TEST_F(HuggingFaceTest, FindsEachSpelling) {
  const std::string norm = "bert.encoder.layer.3.output.LayerNorm.weight";
  EXPECT_EQ(found({norm}, norm), norm);
  EXPECT_EQ(found({"bert.encoder.layer.3.output.LayerNorm.gamma"}, norm),
            "bert.encoder.layer.3.output.LayerNorm.gamma");
  EXPECT_EQ(found({"encoder.layer.3.output.LayerNorm.weight"}, norm),
            "encoder.layer.3.output.LayerNorm.weight");
  EXPECT_EQ(found({"encoder.layer.3.output.LayerNorm.beta"},
                  "bert.encoder.layer.3.output.LayerNorm.bias"),
            "encoder.layer.3.output.LayerNorm.beta");
  EXPECT_EQ(found({"h.0.attn.c_attn.weight"}, "transformer.h.0.attn.c_attn.weight"),
            "h.0.attn.c_attn.weight");
  EXPECT_EQ(found({"cls.predictions.decoder.bias"}, "cls.predictions.bias"),
            "cls.predictions.decoder.bias");
  EXPECT_EQ(found({"something.else"}, norm), norm);
}

class ConfigTest : public ::testing::Test {
 protected:
  TextNetworkOptions read(const std::string& json) const {
    std::ofstream(path()) << json;
    return read_hugging_face_config(path());
  }
  std::string complaint(const std::string& json) const {
    try {
      read(json);
    } catch (const DataError& error) {
      return error.what();
    }
    ADD_FAILURE() << "no DataError";
    return "";
  }
  std::string path() const { return folder_.path() + "/config.json"; }

  TempFolder folder_;
};

TEST_F(ConfigTest, Bert) {
  const auto bert =
      std::get<BertOptions>(read(R"({"model_type": "bert", "vocab_size": 100, "hidden_size": 48,
               "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 96,
               "max_position_embeddings": 40, "type_vocab_size": 4, "layer_norm_eps": 1e-7,
               "hidden_act": "gelu"})"));
  EXPECT_EQ(bert.vocabulary, 100);
  EXPECT_EQ(bert.width, 48);
  EXPECT_EQ(bert.layers, 3);
  EXPECT_EQ(bert.heads, 6);
  EXPECT_EQ(bert.inner, 96);
  EXPECT_EQ(bert.longest(), 40);
  EXPECT_EQ(bert.segments, 4);
  EXPECT_EQ(bert.norm_eps, 1e-7);
  EXPECT_FALSE(bert.roberta_names);
}

TEST_F(ConfigTest, RobertaBeginsItsPositionsLater) {
  const auto roberta = std::get<BertOptions>(
      read(R"({"model_type": "xlm-roberta", "vocab_size": 100, "hidden_size": 48,
               "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 96,
               "max_position_embeddings": 42, "type_vocab_size": 1})"));
  EXPECT_EQ(roberta.longest(), 40);
  EXPECT_EQ(roberta.norm_eps, 1e-5);
  EXPECT_TRUE(roberta.roberta_names);
}

TEST_F(ConfigTest, Gpt2) {
  const std::string sizes = R"({"model_type": "gpt2", "vocab_size": 100, "n_embd": 48,
      "n_layer": 3, "n_head": 6, "n_positions": 40, "layer_norm_epsilon": 1e-6, "n_inner": )";
  const auto gpt2 = std::get<Gpt2Options>(read(sizes + "null}"));
  EXPECT_EQ(gpt2.vocabulary, 100);
  EXPECT_EQ(gpt2.width, 48);
  EXPECT_EQ(gpt2.layers, 3);
  EXPECT_EQ(gpt2.heads, 6);
  EXPECT_EQ(gpt2.positions, 40);
  EXPECT_EQ(gpt2.norm_eps, 1e-6);
  EXPECT_EQ(std::get<Gpt2Options>(read(sizes + "192}")).width, 48);
  EXPECT_THAT(complaint(sizes + "100}"), ::testing::HasSubstr("'n_inner'"));
}

TEST_F(ConfigTest, IsWrittenAsItIsRead) {
  BertOptions bert{.vocabulary = 100, .positions = 40, .segments = 4, .layers = 3};
  bert.width = 48, bert.heads = 6, bert.inner = 96, bert.norm_eps = 1e-7;
  BertOptions roberta = bert_options("xlm-roberta-base");
  roberta.layers = 3;
  const Gpt2Options gpt2{
      .vocabulary = 100, .positions = 40, .layers = 3, .width = 48, .heads = 6};
  for (const TextNetworkOptions& options :
       {TextNetworkOptions(bert), TextNetworkOptions(roberta), TextNetworkOptions(gpt2)}) {
    const std::string json = hugging_face_config(options);
    EXPECT_EQ(hugging_face_config(parse_hugging_face_config(json, "here")), json);
    EXPECT_EQ(difference(sizes_of(read(json)), sizes_of(options), "it"), "") << json;
  }
  const auto again =
      std::get<BertOptions>(parse_hugging_face_config(hugging_face_config(bert), "here"));
  EXPECT_EQ(again.vocabulary, 100);
  EXPECT_EQ(again.segments, 4);
  EXPECT_EQ(again.norm_eps, 1e-7);
  EXPECT_FALSE(again.roberta_names);
  EXPECT_TRUE(std::get<BertOptions>(read(hugging_face_config(roberta))).roberta_names);
  EXPECT_THROW(parse_hugging_face_config("{", "here"), DataError);
}

TEST_F(ConfigTest, WhatIsNoConfigIsRefused) {
  for (const char* json : {"", "{", "[1]", "7", "{}", R"({"model_type": 3})",
                           R"({"model_type": "gpt2", "n_layer": 1e30})",
                           R"({"model_type": "gpt2", "vocab_size": 9, "n_positions": 9,
                               "n_embd": 2, "n_head": 1, "n_layer": 1001})"}) {
    EXPECT_THAT(complaint(json), ::testing::HasSubstr(path())) << json;
  }
  EXPECT_THROW(read_hugging_face_config(folder_.path() + "/none"), DataError);
}

TEST(Sizes, DifferencesNameBoth) {
  const TextNetworkSizes two{.layers = 2, .width = 32, .positions = 24};
  EXPECT_EQ(difference(two, sizes_of(gpt2_options("gpt2")), "gpt2"),
            "2 layers, hidden size 32, 24 positions; gpt2 has 12 layers, hidden size 768, "
            "1024 positions");
  EXPECT_EQ(difference(two, {.layers = 2, .heads = 3}, "it"), "") << "as far as both are known";
}

}  // namespace
}  // namespace tidemark::testing
