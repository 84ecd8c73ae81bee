#include "models/text_models.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/hugging_face.h"
#include "models/llama.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"
#include "runtime/schedule/step_trace.h"
#include "runtime/session/session.h"
#include "tests/models/data/files.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

Tensor ids(const Shape& shape) {
  return Session::current().upload(TensorMeta::contiguous(DType::kInt64, shape),
                                   Category::kData, nullptr, nullptr);
}

// A batch of two sequences; mlm asks for three words.
TextInput input_for(const std::string& task, int64_t length) {
  TextInput input{.tokens = ids({2, length})};
  if (task == "mlm") {
    input.positions = ids({3});
    input.labels = ids({3});
  } else if (task == "clm") {
    input.labels = ids({2 * length});
  } else {
    input.segments = ids({2, length});
    input.lengths = ids({2});
    input.labels = ids({2});
    input.ends = ids({2});
  }
  return input;
}

// On a device without data, so that large networks cost nothing.
class TextModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<TextModel> make(const std::string& task) const {
    ParameterInit init(0);
    return model_.make(task, {.vocabulary = kVocabulary}, init);
  }

  static constexpr int64_t kVocabulary = 1000;

  // Some networks are larger than any device.
  Session session_{
      {.device = "sim:a100-80gb", .budget = Bytes(int64_t{1} << 41), .policy = "none"}};
  const TextModelInfo& model_ = text_model(GetParam());
};

TEST_P(TextModelTest, TrainsOnTheSimulatorForEachTask) {
  ASSERT_FALSE(model_.tasks.empty());
  for (const std::string& task : names_of(model_.tasks)) {
    SCOPED_TRACE(task);
    const std::unique_ptr<TextModel> network = make(task);
    for (const NamedTensor& one : network->parameters()) {
      if (one.name != model_.words) continue;
      EXPECT_EQ(one.tensor.shape(), (Shape{kVocabulary, model_.sizes.width}));
    }
    session_.step([&] {
      const TextOutput output = network->run(input_for(task, 16));
      EXPECT_EQ(output.loss.elements(), 1);
      if (task == "squad") {
        EXPECT_EQ(output.start.shape(), (Shape{2, 16}));
        EXPECT_EQ(output.end.shape(), (Shape{2, 16}));
      } else {
        ASSERT_TRUE(output.correct);
        EXPECT_EQ(output.correct.elements(), 1);
      }
      backward(output.loss);
      for (const NamedTensor& one : network->parameters()) {
        ASSERT_TRUE(grad_of(one.tensor)) << one.name;
      }
    });
    network->train(false);
    const NoGrad no_grad;
    session_.step(
        [&] { network->run(input_for(task, std::min<int64_t>(model_.longest, 4096))); });
    EXPECT_THROW(network->run(input_for(task, model_.longest + 1)), UsageError);
  }
  EXPECT_THROW(make("translation"), UsageError);
}

TEST_P(TextModelTest, ItsConfigIsReadBack) {
  for (const int64_t vocabulary : {model_.vocabulary, int64_t{100}}) {
    const std::string config = model_.config_with(vocabulary);
    const TextModelInfo again = parse_hugging_face_config(config, "here");
    EXPECT_EQ(again.config, config);
    EXPECT_EQ(again.vocabulary, vocabulary);
    EXPECT_EQ(again.family, model_.family);
    EXPECT_EQ(again.sizes, model_.sizes);
    EXPECT_EQ(again.longest, model_.longest);
    EXPECT_EQ(names_of(again.tasks), names_of(model_.tasks));
    EXPECT_EQ(again.words, model_.words);
    EXPECT_EQ(again.words_format, model_.words_format);
    EXPECT_EQ(again.learnt_vocabulary, model_.learnt_vocabulary);
    EXPECT_EQ(again.rate, model_.rate);
  }
}

// The header of a file with the network's parameters. What would be their values is a hole.
TEST_P(TextModelTest, AFilesHeaderGivesItsSizes) {
  const std::unique_ptr<TextModel> network = make(model_.tasks.front().name);
  const std::string below_heads = model_.words.substr(0, model_.words.find('.') + 1);
  const TempFolder folder;
  for (const bool heads : {true, false}) {
    std::vector<SafetensorsSpec> tensors;
    int64_t bytes = 0;
    for (const NamedTensor& one : network->parameters()) {
      const bool is_head = !one.name.starts_with(below_heads);
      if (is_head && !heads) continue;
      const std::string name = heads ? one.name : one.name.substr(below_heads.size());
      tensors.push_back({name, DType::kBool, one.tensor.shape()});
      bytes += one.tensor.elements();
    }
    const std::string path = folder.path() + "/model.safetensors";
    const std::string header = SafetensorsWriter(folder.path() + "/none", tensors, {}).header();
    folder.write("model.safetensors", ByteVector(header.begin(), header.end()));
    std::filesystem::resize_file(path, header.size() + static_cast<size_t>(bytes));

    const SafetensorsFile file(path);
    TextModelSizes sizes = sizes_in(file, model_);
    EXPECT_EQ(sizes.heads, 0);
    sizes.heads = model_.sizes.heads;
    EXPECT_EQ(sizes, model_.sizes) << difference(sizes, model_.sizes, "it");
  }
}

INSTANTIATE_TEST_SUITE_P(All, TextModelTest, ::testing::ValuesIn(text_model_names()),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(TextModels, OptionsReachTheNetwork) {
  for (const std::string name : {"bert-tiny", "gpt2"}) {
    const TextModelInfo& model = text_model(name);
    for (const std::string& task : names_of(model.tasks)) {
      SCOPED_TRACE(name + ' ' + task);
      // The number of a step's operators, and the bytes of their tensors.
      const auto step = [&](double dropout, AttentionImplementation attention) {
        Session session({.device = "sim:host", .policy = "none"});
        ParameterInit init(0);
        const auto network = model.make(
            task, {.vocabulary = 50, .dropout = dropout, .attention = attention}, init);
        const StepTrace trace =
            session.record_step([&] { backward(network->run(input_for(task, 32)).loss); });
        Bytes bytes(0);
        for (const StepTrace::Storage& storage : trace.storages) bytes += storage.size;
        return std::pair(trace.ops.size(), bytes);
      };
      const auto efficient = step(0, AttentionImplementation::kMemoryEfficient);
      const auto dropping = step(0.1, AttentionImplementation::kMemoryEfficient);
      const auto materialised = step(0, AttentionImplementation::kMaterialised);
      EXPECT_GT(dropping.first, efficient.first);
      EXPECT_GT(materialised.second, efficient.second);
    }
  }
  // The row for padding is 0.
  Session session({.device = "cpu", .threads = 1});
  ParameterInit init(0);
  const TextModelInfo& bert = text_model("bert-tiny");
  const auto network = bert.make("mlm", {.vocabulary = 5, .pad = 3}, init);
  for (const NamedTensor& one : network->parameters()) {
    if (one.name != bert.words) continue;
    const std::vector<float> words = to_vector(one.tensor);
    for (int64_t row = 0; row < 5; ++row) {
      const auto begin = words.begin() + row * bert.sizes.width;
      const bool zero =
          std::all_of(begin, begin + bert.sizes.width, [](float v) { return v == 0; });
      EXPECT_EQ(zero, row == 3) << row;
    }
  }
}

TEST(TextModels, WhatOnlyLlamaTakesIsRefusedByOthers) {
  for (const std::string name : {"bert-tiny", "gpt2", "smollm2-135m"}) {
    const TextModelInfo& model = text_model(name);
    for (const std::string& task : names_of(model.tasks)) {
      Session session({.device = "sim:a100-80gb", .policy = "none"});
      ParameterInit init(0);
      const auto network = model.make(task, {.vocabulary = 50}, init);
      TextInput scaled = input_for(task, 16), packed = input_for(task, 16);
      scaled.loss_scale = session.upload(TensorMeta::contiguous(DType::kFloat32, Shape{}),
                                         Category::kData, nullptr, nullptr);
      packed.starts = session.upload(TensorMeta::contiguous(DType::kInt32, Shape{2, 16}),
                                     Category::kData, nullptr, nullptr);
      for (const auto& [input, field] :
           {std::pair{scaled, "'loss_scale'"}, std::pair{packed, "'starts'"}}) {
        const auto run = [&, &given = input] { network->run(given); };
        if (name == "smollm2-135m") {
          EXPECT_NO_THROW(run());
        } else {
          EXPECT_THAT(run, ::testing::ThrowsMessage<UsageError>(HasSubstr(field))) << name;
        }
      }
    }
  }
}

TEST(TextModels, UnknownNamesListTheKnown) {
  EXPECT_TRUE(is_text_model("gpt2"));
  EXPECT_FALSE(is_text_model("gpt3"));
  try {
    text_model("gpt3");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("bert-tiny"));
    EXPECT_THAT(error.what(), HasSubstr("gpt2-xl"));
  }
}

class ConfigTest : public ::testing::Test {
 protected:
  TextModelInfo read(const std::string& json) const {
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

std::map<std::string, Shape> shapes_of(const TextModelInfo& model) {
  Session session({.device = "sim:host"});
  ParameterInit init(0);
  const auto network = model.make(model.tasks.front().name, {.vocabulary = 100}, init);
  std::map<std::string, Shape> shapes;
  for (const NamedTensor& one : network->parameters()) shapes[one.name] = one.tensor.shape();
  return shapes;
}

TEST_F(ConfigTest, Bert) {
  const TextModelInfo bert =
      read(R"({"model_type": "bert", "vocab_size": 100, "hidden_size": 48,
               "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 96,
               "max_position_embeddings": 40, "type_vocab_size": 4, "layer_norm_eps": 1e-7,
               "hidden_act": "gelu"})");
  EXPECT_EQ(bert.family, "BERT");
  EXPECT_EQ(bert.vocabulary, 100);
  EXPECT_EQ(
      bert.sizes,
      (TextModelSizes{.layers = 3, .width = 48, .heads = 6, .inner = 96, .positions = 40}));
  EXPECT_EQ(bert.longest, 40);
  EXPECT_EQ(Json::parse(bert.config)["layer_norm_eps"], 1e-7);
  const auto shapes = shapes_of(bert);
  EXPECT_EQ(shapes.at("bert.embeddings.token_type_embeddings.weight"), (Shape{4, 48}));
  EXPECT_EQ(shapes.at(bert.words), (Shape{100, 48}));
  EXPECT_EQ(shapes.at(bert.inner), (Shape{96, 48}));
  EXPECT_EQ(shapes.count("bert.encoder.layer.3.output.dense.bias"), 0U);
}

TEST_F(ConfigTest, RobertaBeginsItsPositionsLater) {
  const TextModelInfo roberta =
      read(R"({"model_type": "roberta", "vocab_size": 100, "hidden_size": 48,
               "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 96,
               "max_position_embeddings": 42, "type_vocab_size": 1})");
  EXPECT_EQ(roberta.longest, 40);
  EXPECT_EQ(roberta.sizes.positions, 42);
  const Json config = Json::parse(roberta.config);
  EXPECT_EQ(config["layer_norm_eps"], 1e-5);
  EXPECT_EQ(config["model_type"], "xlm-roberta");
  EXPECT_EQ(shapes_of(roberta).at("roberta.embeddings.position_embeddings.weight"),
            (Shape{42, 48}));
}

TEST_F(ConfigTest, Gpt2) {
  const std::string sizes = R"({"model_type": "gpt2", "vocab_size": 100, "n_embd": 48,
      "n_layer": 3, "n_head": 6, "n_positions": 40, "layer_norm_epsilon": 1e-6, "n_inner": )";
  const TextModelInfo gpt2 = read(sizes + "null}");
  EXPECT_EQ(gpt2.family, "GPT-2");
  EXPECT_EQ(gpt2.vocabulary, 100);
  EXPECT_EQ(
      gpt2.sizes,
      (TextModelSizes{.layers = 3, .width = 48, .heads = 6, .inner = 192, .positions = 40}));
  EXPECT_EQ(gpt2.longest, 40);
  EXPECT_EQ(Json::parse(gpt2.config)["layer_norm_epsilon"], 1e-6);
  EXPECT_EQ(read(sizes + "192}").sizes, gpt2.sizes);
  EXPECT_THAT(complaint(sizes + "100}"), HasSubstr("'n_inner'"));
}

std::string llama_config(const std::string& type, const std::string& more) {
  return R"({"model_type": ")" + type + R"(", "vocab_size": 100, "hidden_size": 48,
      "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 96,
      "max_position_embeddings": 8000)" +
         more + "}";
}

TEST_F(ConfigTest, LlamaHasTheBiasesThatItsConfigNames) {
  const std::string bias = "model.layers.2.self_attn.q_proj.bias";
  const std::string output = "model.layers.0.self_attn.o_proj.bias";
  const std::string inner = "model.layers.0.mlp.up_proj.bias";
  const std::string both = R"(, "attention_bias": true, "mlp_bias": true)";
  const auto none = shapes_of(read(llama_config("llama", "")));
  EXPECT_EQ(none.count(bias) + none.count(output) + none.count(inner), 0U);
  EXPECT_EQ(none.at("model.layers.0.self_attn.k_proj.weight"), (Shape{48, 48}));
  const auto all = shapes_of(read(llama_config("llama", both)));
  EXPECT_EQ(all.count(bias) + all.count(output) + all.count(inner), 3U);
  // These types have no choice.
  const std::string kv = R"(, "num_key_value_heads": 2)";
  const auto qwen = shapes_of(read(llama_config("qwen2", kv + R"(, "attention_bias": false)")));
  EXPECT_EQ(qwen.count(bias), 1U);
  EXPECT_EQ(qwen.count(output), 0U);
  EXPECT_EQ(qwen.at("model.layers.0.self_attn.k_proj.weight"), (Shape{16, 48}));
  const auto mistral = shapes_of(read(llama_config("mistral", kv + both)));
  EXPECT_EQ(mistral.count(bias) + mistral.count(output) + mistral.count(inner), 0U);
}

TEST_F(ConfigTest, LlamaHeadsMayHaveAWidthOfTheirOwn) {
  const auto shapes =
      shapes_of(read(llama_config("llama", R"(, "head_dim": 10, "num_key_value_heads": 3)")));
  EXPECT_EQ(shapes.at("model.layers.0.self_attn.q_proj.weight"), (Shape{60, 48}));
  EXPECT_EQ(shapes.at("model.layers.0.self_attn.v_proj.weight"), (Shape{30, 48}));
  EXPECT_EQ(shapes.at("model.layers.0.self_attn.o_proj.weight"), (Shape{48, 60}));
  EXPECT_EQ(shapes.count("lm_head.weight"), 1U);
  const auto tied = shapes_of(read(llama_config("llama", R"(, "tie_word_embeddings": true)")));
  EXPECT_EQ(tied.count("lm_head.weight"), 0U);
}

TEST_F(ConfigTest, WindowsLimitLlamasSequences) {
  const auto longest = [&](const std::string& type, const std::string& more) {
    return read(llama_config(type, R"(, "num_key_value_heads": 2)" + more)).longest;
  };
  const std::string window = R"(, "sliding_window": 100)";
  const std::string on = R"(, "use_sliding_window": true)";
  EXPECT_EQ(longest("mistral", window), 100);
  EXPECT_EQ(longest("mistral", R"(, "sliding_window": null)"), 8000);
  EXPECT_EQ(longest("mistral", ""), 4096);
  EXPECT_EQ(longest("mistral", window + R"(, "use_sliding_window": false)"), 100);
  EXPECT_EQ(longest("qwen2", window), 8000);
  EXPECT_EQ(longest("qwen2", window + on), 100);
  EXPECT_EQ(longest("qwen2", R"(, "sliding_window": 9000)" + on), 8000);
  EXPECT_EQ(longest("llama", window), 8000);
}

TEST_F(ConfigTest, WhatLlamaDoesNotImplementIsRefused) {
  const std::map<std::string, std::string> refused{
      {R"(, "num_key_value_heads": 4)", "'num_key_value_heads'"},
      {R"(, "head_dim": 9)", "'head_dim'"},
      {R"(, "head_dim": 16777216)", "'head_dim'"},
      {R"(, "hidden_act": "gelu")", "'hidden_act'"},
      {R"(, "partial_rotary_factor": 0.5)", "'partial_rotary_factor'"},
      {R"(, "rope_scaling": {"rope_type": "yarn", "factor": 2})", "'rope_type' is 'yarn'"},
      {R"(, "rope_scaling": {"type": "linear"})", "'factor' is missing"},
      {R"(, "rope_scaling": {"rope_type": "llama3", "factor": 2})", "original_max_position"},
      {R"(, "rope_parameters": 7)", "'rope_parameters' is not a JSON object"},
      {R"(, "rope_theta": -1)", "'rope_theta'"}};
  for (const auto& [more, part] : refused) {
    EXPECT_THAT(complaint(llama_config("llama", more)), HasSubstr(part)) << more;
  }
  EXPECT_THAT(complaint(llama_config("qwen2", "")), HasSubstr("'num_key_value_heads'"));
}

TEST(LlamaTest, LinearScalingDividesAllAngles) {
  LlamaOptions options{.head_width = 8, .rope_base = 100};
  const std::vector<float> plain = rope_frequencies(options);
  ASSERT_EQ(plain.size(), 4U);
  EXPECT_EQ(plain[0], 1.0F);
  EXPECT_NEAR(plain[2], 0.1, 1e-8);
  options.scaling = {.kind = RopeScaling::Kind::kLinear, .factor = 4};
  const std::vector<float> scaled = rope_frequencies(options);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_FLOAT_EQ(scaled[i], plain[i] / 4) << i;
}

// Without logits, for either head: the loss of the labels that count, as a
// mean or as a scaled sum.
TEST(LlamaTest, ItsLossIsThatOfItsLogits) {
  Session session({.threads = test_threads()});
  for (const bool tied : {false, true}) {
    ParameterInit init(1);
    Llama model({.vocabulary = 50,
                 .positions = 8,
                 .layers = 1,
                 .width = 16,
                 .heads = 2,
                 .kv_heads = 1,
                 .head_width = 8,
                 .inner = 24,
                 .tied = tied},
                init);
    const Tensor tokens = from<int64_t>({3, 9, 27, 31, 43, 29}, {2, 3});
    const Tensor labels = from<int64_t>({9, -100, 31, -100, 29, 0}, {6});
    const Tensor expected = cross_entropy(model.logits(tokens), labels, -100);
    const TextOutput mean = model.run({.tokens = tokens, .labels = labels});
    const TextOutput sum =
        model.run({.tokens = tokens, .labels = labels, .loss_scale = from<float>({0.25F}, {})});
    expect_close(mean.loss, to_vector(expected));
    expect_close(sum.loss, to_vector(expected));
    EXPECT_EQ(to_vector<int64_t>(mean.correct),
              to_vector<int64_t>(accuracy_count(model.logits(tokens), labels)));
    backward(mean.loss);
    for (const NamedTensor& one : model.parameters()) {
      EXPECT_TRUE(grad_of(one.tensor).defined()) << one.name;
    }
  }
}

TEST_F(ConfigTest, WhatIsNoConfigIsRefused) {
  for (const char* json : {"", "{", "[1]", "7", "{}", R"({"model_type": 3})",
                           R"({"model_type": "gpt2", "n_layer": 1e30})",
                           R"({"model_type": "gpt2", "vocab_size": 9, "n_positions": 9,
                               "n_embd": 2, "n_head": 1, "n_layer": 1001})"}) {
    EXPECT_THAT(complaint(json), HasSubstr(path())) << json;
  }
  EXPECT_THAT(complaint(R"({"model_type": "t5"})"),
              HasSubstr("is 't5'; supported are bert, roberta, "));
  EXPECT_THROW(parse_hugging_face_config("{", "here"), DataError);
  EXPECT_THROW(read_hugging_face_config(folder_.path() + "/none"), DataError);
}

TEST(Sizes, DifferencesNameBoth) {
  const TextModelSizes two{.layers = 2, .width = 32, .positions = 24};
  EXPECT_EQ(difference(two, text_model("gpt2").sizes, "gpt2"),
            "2 layers, hidden size 32, 24 positions; gpt2 has 12 layers, hidden size 768, "
            "1024 positions");
  EXPECT_EQ(difference(two, {.layers = 2, .heads = 3}, "it"), "") << "as far as both are known";
}

}  // namespace
}  // namespace tidemark::testing
