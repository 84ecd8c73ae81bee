#include "models/checkpoint/gguf_llama.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/core/errors.h"
#include "tests/models/checkpoint/gguf_builder.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::GgufBuilder;
using ::testing::HasSubstr;

std::vector<std::string> sorted_names(const WeightSource& source) {
  std::vector<std::string> names;
  for (const WeightEntry& entry : source.entries()) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

// weight() in scripts/make_gguf_golden.py.
std::vector<float> expected(size_t index, const Shape& shape) {
  const int64_t columns = shape.elements() / shape[0];
  std::vector<float> values;
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t value = (static_cast<int64_t>(index) * 13 + row * 7 + column * 3) % 127;
      values.push_back(static_cast<float>(column == 0 ? 127 : value));
    }
  }
  return values;
}

// A tensor that the network has besides those of the file has an index too.
void check_golden(const std::string& name, size_t count, size_t first) {
  GgufLlama file(std::string(TIDEMARK_GOLDEN_DIR) + '/' + name);
  const std::vector<std::string> names = sorted_names(file);
  ASSERT_EQ(names.size(), count);
  for (size_t i = 0; i < names.size(); ++i) {
    const WeightEntry& entry = *file.find(names[i]);
    const std::vector<float> values = expected(first + i, entry.shape);
    std::vector<float> read(values.size());
    file.read(entry, std::as_writable_bytes(std::span(read)));
    EXPECT_EQ(read, values) << names[i] << ", " << entry.type;
    // In pieces that end within rows.
    std::vector<float> pieces(values.size());
    for (size_t at = 0; at < pieces.size();) {
      const auto piece =
          std::span(pieces).subspan(at, std::min<size_t>(37, pieces.size() - at));
      file.read(entry, size_of(DType::kFloat32) * static_cast<int64_t>(at),
                std::as_writable_bytes(piece));
      at += piece.size();
    }
    EXPECT_EQ(pieces, values) << names[i] << ", " << entry.type;
  }
}

TEST(GgufLlama, WeightsAreAsInHuggingFace) { check_golden("gguf_llama.gguf", 21, 0); }

TEST(GgufLlama, Qwen2HasBiasesAndItsRowsInOrder) { check_golden("gguf_qwen2.gguf", 14, 1); }

TEST(GgufLlama, TheConfigIsInTheMetadata) {
  const GgufLlama file(std::string(TIDEMARK_GOLDEN_DIR) + "/gguf_llama.gguf");
  EXPECT_EQ(json::parse(file.metadata().at("config")), json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                     "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
    "vocab_size": 12, "tie_word_embeddings": false, "attention_bias": false,
    "mlp_bias": false})"));
  const GgufLlama qwen2(std::string(TIDEMARK_GOLDEN_DIR) + "/gguf_qwen2.gguf");
  const json config = json::parse(qwen2.metadata().at("config"));
  EXPECT_EQ(config["architectures"][0], "Qwen2ForCausalLM");
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_EQ(config["attention_bias"], true);
  EXPECT_EQ(config["rope_scaling"], json::parse(R"({"rope_type": "linear", "factor": 2.5})"));
}

TEST(GgufLlama, Names) {
  EXPECT_EQ(hugging_face_name("token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(hugging_face_name("output_norm.weight"), "model.norm.weight");
  EXPECT_EQ(hugging_face_name("output.weight"), "lm_head.weight");
  EXPECT_EQ(hugging_face_name("blk.31.attn_k.bias"), "model.layers.31.self_attn.k_proj.bias");
  EXPECT_EQ(hugging_face_name("blk.0.ffn_norm.weight"),
            "model.layers.0.post_attention_layernorm.weight");
  for (const char* other :
       {"blk.attn_q.weight", "blk..attn_q.weight", "blk.0", "blk.0.", "blk.0.attn_q",
        "blk.0.attn_q.scale", "output", "blk.0x.attn_q.weight", "blk.0.ffn_gate_exps.weight",
        "model.norm.weight", ""}) {
    EXPECT_EQ(hugging_face_name(other), "") << other;
  }
}

class GgufLlamaFileTest : public ::testing::Test {
 protected:
  static GgufBuilder valid(const std::string& architecture = "llama") {
    GgufBuilder gguf;
    gguf.text("general.architecture", architecture);
    const std::string prefix = architecture + '.';
    gguf.size(prefix + "block_count", 1).size(prefix + "context_length", 16);
    gguf.size(prefix + "embedding_length", 8).size(prefix + "feed_forward_length", 4);
    gguf.size(prefix + "attention.head_count", 2);
    gguf.number(prefix + "attention.layer_norm_rms_epsilon", GgufKind::kFloat32, 1e-6F);
    gguf.zeros("token_embd.weight", {8, 3});
    return gguf;
  }
  json config(const GgufBuilder& gguf) {
    const GgufLlama file(folder_.write("a.gguf", gguf.bytes()));
    return json::parse(file.metadata().at("config"));
  }
  std::string complaint(const GgufBuilder& gguf) {
    try {
      config(gguf);
    } catch (const DataError& error) {
      EXPECT_THAT(error.file(), HasSubstr("a.gguf"));
      return error.what();
    }
    ADD_FAILURE() << "no DataError";
    return "";
  }

  testing::TempFolder folder_;
};

TEST_F(GgufLlamaFileTest, ValuesThatMayBeMissing) {
  const json made = config(valid());
  EXPECT_EQ(made["num_key_value_heads"], 2);
  EXPECT_EQ(made["head_dim"], 4);
  EXPECT_EQ(made["rope_theta"], 10000.0);
  EXPECT_EQ(made["rms_norm_eps"], 1e-6);
  EXPECT_EQ(made["vocab_size"], 3);
  EXPECT_FALSE(made.contains("rope_scaling"));
  EXPECT_FALSE(made.contains("eos_token_id"));
  EXPECT_EQ(config(valid().size("tokenizer.ggml.eos_token_id", 2))["eos_token_id"], 2);
}

TEST_F(GgufLlamaFileTest, HeadsMayBeWiderThanTheirShare) {
  GgufBuilder gguf = valid();
  gguf.size("llama.attention.key_length", 16).size("llama.attention.value_length", 16);
  EXPECT_EQ(config(gguf.size("llama.rope.dimension_count", 16))["head_dim"], 16);
}

TEST_F(GgufLlamaFileTest, AFactorAloneIsLinear) {
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    EXPECT_EQ(config(valid().number(key, GgufKind::kFloat32, 4.0F))["rope_scaling"],
              json::parse(R"({"rope_type": "linear", "factor": 4.0})"))
        << key;
  }
}

TEST_F(GgufLlamaFileTest, AWindowMakesLlamaAMistral) {
  const json mistral = config(valid().size("llama.attention.sliding_window", 8));
  EXPECT_EQ(mistral["model_type"], "mistral");
  EXPECT_EQ(mistral["sliding_window"], 8);
  const json qwen = config(valid("qwen2").size("qwen2.attention.sliding_window", 8));
  EXPECT_EQ(qwen["model_type"], "qwen2");
  EXPECT_EQ(qwen["use_sliding_window"], true);
}

TEST_F(GgufLlamaFileTest, WhatIsNotSupportedIsSaid) {
  EXPECT_THAT(complaint(GgufBuilder()), HasSubstr("'general.architecture': is missing"));
  EXPECT_THAT(complaint(valid("gemma")), HasSubstr("is 'gemma'; 'llama' and 'qwen2' are"));
  EXPECT_THAT(complaint(valid().size("llama.expert_count", 8)), HasSubstr("experts"));
  EXPECT_THAT(complaint(valid().size("split.count", 3)), HasSubstr("one of 3 parts"));
  EXPECT_THAT(complaint(valid().size("llama.rope.dimension_count", 2)),
              HasSubstr("'llama.rope.dimension_count': is 2, but heads have 4"));
  EXPECT_THAT(complaint(valid().size("llama.attention.head_count_kv", 0)),
              HasSubstr("'llama.attention.head_count_kv': is not a number from 1"));
  for (const std::string type : {"longrope", "yarn"}) {
    EXPECT_THAT(complaint(valid().text("llama.rope.scaling.type", type)),
                HasSubstr("'llama.rope.scaling.type': '" + type));
  }
  EXPECT_THAT(complaint(valid().text("llama.rope.scaling.type", "linear")),
              HasSubstr("'llama.rope.scaling.factor': is missing"));
  EXPECT_THAT(complaint(valid().number("llama.rope.freq_base", GgufKind::kFloat32, -1.0F)),
              HasSubstr("'llama.rope.freq_base': is not a number above 0"));
  EXPECT_THAT(complaint(valid().zeros("rope_freqs.weight", {2})),
              HasSubstr("'rope_freqs.weight': factor 0 is not"));
  EXPECT_THAT(complaint(valid().zeros("rope_freqs.weight", {3})),
              HasSubstr("'rope_freqs.weight': is not F32 (2)"));
  EXPECT_THAT(complaint(valid().zeros("blk.0.other.weight", {3})),
              HasSubstr("'blk.0.other.weight': is not part of"));
  EXPECT_THAT(complaint(valid().zeros("blk.0.attn_q.weight", {8, 6})),
              HasSubstr("'blk.0.attn_q.weight': its rows are not those of 2 heads"));
  EXPECT_THAT(complaint(valid().zeros("blk.0.attn_k.weight", {})),
              HasSubstr("'blk.0.attn_k.weight': its rows are not"));
}

// A real file: SmolLM2-135M-Instruct.Q4_1.gguf. The sum is that of what transformers makes of
// it, as scripts/make_gguf_golden.py --smollm2 prints.
TEST(GgufLlama, SmolLM2) {
  const char* path = std::getenv("TIDEMARK_SMOLLM2");
  if (path == nullptr) GTEST_SKIP() << "TIDEMARK_SMOLLM2 does not name the file";
  GgufLlama file(path);
  const std::vector<std::string> names = sorted_names(file);
  EXPECT_EQ(names.size(), 272u);
  uLong crc = 0;
  for (const std::string& name : names) {
    const WeightEntry& entry = *file.find(name);
    std::vector<std::byte> values(static_cast<size_t>(entry.bytes().count()));
    file.read(entry, values);
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(values.data()), values.size());
  }
  EXPECT_EQ(crc, 0xDB0A7496u);
  EXPECT_EQ(json::parse(file.metadata().at("config"))["num_key_value_heads"], 3);
}

}  // namespace
}  // namespace tidemark
