// BERT, XLM-R, GPT-2, Llama and Qwen2 against Hugging Face transformers, the encoder-decoder
// transformer against torch.nn.Transformer: the same weights, read from a safetensors file with
// its names, give the same logits, loss and gradients. The files and how they are made:
// scripts/make_golden.py.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/bert.h"
#include "models/checkpoint/hugging_face.h"
#include "models/checkpoint/peft.h"
#include "models/checkpoint/weight_file.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/text_models.h"
#include "models/transformer.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/compare.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "tests/models/data/files.h"
#include "tests/support/golden.h"
#include "tests/support/machine.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

std::string path(const std::string& name) {
  return std::string(TIDEMARK_GOLDEN_DIR "/") + name;
}

// Numbers of a list, or of a list of lists of equal length.
Tensor numbers(const Json& json) {
  std::vector<int64_t> values;
  Shape shape{static_cast<int64_t>(json.size())};
  if (json[0].is_array()) {
    shape = Shape{shape[0], static_cast<int64_t>(json[0].size())};
    for (const Json& row : json) {
      for (const Json& value : row) values.push_back(value);
    }
  } else {
    values = json.get<std::vector<int64_t>>();
  }
  return from(values, shape);
}

void load(Module& model, const std::string& file_name) {
  SafetensorsFile file(path(file_name));
  const LoadReport report =
      load_into(model, file, {.names = hugging_face_names(file), .unexpected_allowed = true});
  EXPECT_EQ(report.loaded, static_cast<int64_t>(model.parameters().size()));
}

// The bytes of each tensor in a file.
std::map<std::string, std::vector<std::byte>> contents(const std::string& safetensors) {
  SafetensorsFile file(safetensors);
  std::map<std::string, std::vector<std::byte>> tensors;
  for (const WeightEntry& entry : file.entries()) {
    std::vector<std::byte>& bytes = tensors[entry.name];
    bytes.resize(static_cast<size_t>(entry.bytes().count()));
    file.read(entry, bytes);
  }
  return tensors;
}

// After backward().
void compare_gradients(const Json& golden, const Module& model) {
  size_t compared = 0;
  for (const auto& [name, samples] : golden.at("tensors").items()) {
    compared += name.starts_with("gradient/") ? 1 : 0;
  }
  const std::vector<NamedTensor> trained = model.trained();
  EXPECT_EQ(compared, trained.size());
  for (const NamedTensor& parameter : trained) {
    compare_samples(golden, "gradient/" + parameter.name, to_vector(grad_of(parameter.tensor)),
                    model.compute_type());
  }
}

struct Kind {
  const char* name;
  AttentionImplementation attention;
  DType dtype = DType::kFloat32;
};

class TransformerGoldenTest : public ::testing::TestWithParam<Kind> {
 protected:
  template <class Options>
  Options small(const Json& golden) const {
    Options options;
    options.vocabulary = golden.at("vocabulary");
    options.positions = golden.at("positions");
    options.layers = golden.at("layers");
    options.width = golden.at("width");
    options.heads = golden.at("heads");
    options.dropout = options.attention_dropout = 0;
    options.attention = GetParam().attention;
    return options;
  }
  BertOptions bert(const Json& golden) const {
    BertOptions options = small<BertOptions>(golden);
    options.inner = golden.at("inner");
    return options;
  }

  static void compare(const Json& golden, const char* name, const Tensor& tensor) {
    compare_samples(golden, name, to_vector(cast(tensor, DType::kFloat32)), GetParam().dtype);
  }

  // Logits, loss and gradients.
  static void compare_training(const Json& golden, const Module& model, const Tensor& logits,
                               const Tensor& labels) {
    compare(golden, "logits", logits);
    compare_training(golden, model, cross_entropy(logits, labels));
  }
  static void compare_training(const Json& golden, const Module& model, const Tensor& loss) {
    compare(golden, "loss", loss);
    backward(loss);
    compare_gradients(golden, model);
  }

  void SetUp() override {
    if (GetParam().dtype == DType::kBFloat16) TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  }

  Session session_{{.threads = test_threads(), .budget = Bytes(64 << 20)}};
  ParameterInit init_{1};
};

TEST_P(TransformerGoldenTest, MaskedLm) {
  const Json golden = read_golden(path("bert_small.json")).at(0);
  BertForMaskedLm model(bert(golden), init_);
  load(model, "bert_small.safetensors");
  model.compute_in(GetParam().dtype);
  const Tensor logits = model.logits({.tokens = numbers(golden.at("tokens")),
                                      .segments = numbers(golden.at("segments")),
                                      .keys = numbers(golden.at("lengths"))},
                                     numbers(golden.at("masked_positions")));
  compare_training(golden, model, logits, numbers(golden.at("masked_labels")));
}

TEST_P(TransformerGoldenTest, XlmR) {
  const Json golden = read_golden(path("xlmr_small.json")).at(0);
  BertOptions options = bert(golden);
  const BertOptions published = bert_options("xlm-roberta-base");
  options.first_position = published.first_position;
  options.segments = published.segments;
  options.pad = published.pad;
  options.norm_eps = published.norm_eps;
  options.roberta_names = true;
  BertForMaskedLm model(options, init_);
  load(model, "xlmr_small.safetensors");
  model.compute_in(GetParam().dtype);
  const Tensor logits = model.logits(
      {.tokens = numbers(golden.at("tokens")), .keys = numbers(golden.at("lengths"))},
      numbers(golden.at("masked_positions")));
  compare_training(golden, model, logits, numbers(golden.at("masked_labels")));
}

TEST_P(TransformerGoldenTest, Spans) {
  const Json golden = read_golden(path("bert_small.json")).at(1);
  BertForSpans model(bert(golden), init_);
  load(model, "bert_small.safetensors");
  model.compute_in(GetParam().dtype);
  const BertForSpans::Logits logits = model.logits({.tokens = numbers(golden.at("tokens")),
                                                    .segments = numbers(golden.at("segments")),
                                                    .keys = numbers(golden.at("lengths"))});
  compare(golden, "start", logits.start);
  compare(golden, "end", logits.end);
  const Tensor loss =
      BertForSpans::loss(logits, numbers(golden.at("starts")), numbers(golden.at("ends")));
  compare(golden, "loss", loss);
  backward(loss);
  compare_gradients(golden, model);
}

TEST_P(TransformerGoldenTest, Gpt2) {
  const Json golden = read_golden(path("gpt2_small.json")).at(0);
  Gpt2 model(small<Gpt2Options>(golden), init_);
  load(model, "gpt2_small.safetensors");
  model.compute_in(GetParam().dtype);
  const Tensor logits = model.logits(numbers(golden.at("tokens")));
  compare_training(golden, model, logits, reshape(numbers(golden.at("labels")), {-1}));
}

// From the config.json that transformers writes.
TEST_P(TransformerGoldenTest, LlamaAndQwen2) {
  for (const std::string name : {"llama_small", "qwen2_small"}) {
    SCOPED_TRACE(name);
    const Json golden = read_golden(path(name + ".json")).at(0);
    const TextModelInfo info = parse_hugging_face_config(golden.at("config").dump(), name);
    const std::unique_ptr<TextModel> made = info.make(
        "clm", {.vocabulary = info.vocabulary, .attention = GetParam().attention}, init_);
    auto& model = dynamic_cast<Llama&>(*made);
    load(model, name + ".safetensors");
    model.compute_in(GetParam().dtype);
    const Tensor tokens = numbers(golden.at("tokens"));
    compare(golden, "logits", model.logits(tokens));
    const Tensor labels = reshape(numbers(golden.at("labels")), {-1});
    compare_training(golden, model, model.run({.tokens = tokens, .labels = labels}).loss);
  }
}

// One token after another, with a cache, as all at once.
TEST_P(TransformerGoldenTest, LlamaContinues) {
  const Json golden = read_golden(path("llama_small.json")).at(0);
  const TextModelInfo info =
      parse_hugging_face_config(golden.at("config").dump(), "llama_small");
  const std::unique_ptr<TextModel> made = info.make(
      "clm", {.vocabulary = info.vocabulary, .attention = GetParam().attention}, init_);
  auto& model = dynamic_cast<Llama&>(*made);
  load(model, "llama_small.safetensors");
  model.compute_in(GetParam().dtype);
  const auto tokens = golden.at("tokens").at(0).get<std::vector<int64_t>>();
  const auto count = static_cast<int64_t>(tokens.size());
  const NoGrad no_grad;
  const std::vector<float> all =
      to_vector(cast(model.logits(from(tokens, {1, count})), DType::kFloat32));
  LlamaCache cache(model.options(), count, model.compute_type());
  constexpr int64_t kFirst = 7;
  const float within = GetParam().dtype == DType::kBFloat16 ? 0.1F : 1e-5F;
  for (int64_t end = kFirst; end <= count; ++end) {
    const int64_t begin = end == kFirst ? 0 : end - 1;
    const std::vector<int64_t> some(tokens.begin() + begin, tokens.begin() + end);
    const std::vector<float> next =
        to_vector(cast(model.next(from(some, {1, end - begin}), cache), DType::kFloat32));
    ASSERT_EQ(cache.length(), end);
    const float* expected = all.data() + (end - 1) * info.vocabulary;
    for (size_t i = 0; i < next.size(); ++i) EXPECT_NEAR(next[i], expected[i], within) << end;
  }
  EXPECT_THROW(model.next(from(std::vector<int64_t>{1}, {1, 1}), cache), UsageError);
}

// Packed into one row, sequences have the loss that they have alone.
TEST_P(TransformerGoldenTest, LlamaPacked) {
  const Json golden = read_golden(path("llama_small.json")).at(0);
  const TextModelInfo info =
      parse_hugging_face_config(golden.at("config").dump(), "llama_small");
  const std::unique_ptr<TextModel> model = info.make(
      "clm", {.vocabulary = info.vocabulary, .attention = GetParam().attention}, init_);
  load(*model, "llama_small.safetensors");
  model->compute_in(GetParam().dtype);
  const auto row = golden.at("tokens").at(0).get<std::vector<int64_t>>();
  const auto labels = golden.at("labels").at(0).get<std::vector<int64_t>>();
  const auto count = static_cast<int64_t>(row.size());
  const NoGrad no_grad;
  const auto loss_of = [&](int64_t begin, int64_t end, const Tensor& starts) {
    const std::vector<int64_t> some(row.begin() + begin, row.begin() + end),
        right(labels.begin() + begin, labels.begin() + end);
    return to_vector(model
                         ->run({.tokens = from(some, {1, end - begin}),
                                .labels = from(right, {end - begin}),
                                .starts = starts})
                         .loss)[0];
  };
  constexpr int64_t kCut = 9;
  std::vector<int32_t> starts(static_cast<size_t>(count), 0);
  std::fill(starts.begin() + kCut, starts.end(), kCut);
  const float packed = loss_of(0, count, from(starts, {1, count}));
  const float alone = (loss_of(0, kCut, {}) * kCut +
                       loss_of(kCut, count, {}) * static_cast<float>(count - kCut)) /
                      static_cast<float>(count);
  EXPECT_NEAR(packed, alone, GetParam().dtype == DType::kBFloat16 ? 0.05F : 1e-5F);
  EXPECT_GT(std::abs(loss_of(0, count, {}) - alone), 1e-3F);
}

// Adapters that mean something else are refused, by the key that says so.
TEST(Adapters, OthersAreRefused) {
  const Json good = Json::parse(read_text_file(path("llama_small_lora/adapter_config.json")));
  const TempFolder folder;
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"peft_type", "IA3"},
                                                 {"bias", "all"},
                                                 {"use_dora", true},
                                                 {"use_rslora", true},
                                                 {"rank_pattern", {{"q_proj", 2}}},
                                                 {"modules_to_save", {"lm_head"}},
                                                 {"alora_invocation_tokens", {1, 2}},
                                                 {"init_lora_weights", "pissa"},
                                                 {"target_modules", Json::array()},
                                                 {"target_modules", "("},
                                                 {"target_modules", "q)|(v"},
                                                 {"target_modules", 3},
                                                 {"r", 0}}) {
    Json other = good;
    other[key] = value;
    const std::string text = other.dump();
    folder.write("adapter_config.json", {text.begin(), text.end()});
    EXPECT_THAT([&] { read_adapter_config(folder.path()); },
                ::testing::ThrowsMessage<DataError>(::testing::HasSubstr("'" + key + "'")));
  }
}

// What PEFT's target_modules means, as text: "all-linear", or a regular expression.
TEST(Adapters, TargetsMayBeAText) {
  const Json golden = read_golden(path("llama_small_lora.json")).at(0);
  const Json good = Json::parse(read_text_file(path("llama_small_lora/adapter_config.json")));
  const TempFolder folder;
  const auto changed = [&](const std::string& targets) {
    Json config = good;
    config["target_modules"] = targets;
    const std::string text = config.dump();
    folder.write("adapter_config.json", {text.begin(), text.end()});
    const LoraOptions options = read_adapter_config(folder.path());
    Session session({.device = "cpu", .threads = 1, .budget = Bytes(64 << 20)});
    ParameterInit init(1);
    const TextModelInfo info =
        parse_hugging_face_config(golden.at("config").dump(), "llama_small_lora");
    const auto model = info.make("clm", {.vocabulary = info.vocabulary}, init);
    add_lora(*model, options, init);
    if (options.pattern) {
      save_adapter(folder.path(), *model, options, "");
      EXPECT_EQ(Json::parse(read_text_file(folder.path() + "/adapter_config.json"))
                    .at("target_modules"),
                targets);
    }
    std::vector<std::string> names;
    for (const NamedTensor& each : model->parameters()) {
      const size_t end = each.name.find(".lora_A.");
      if (end != std::string::npos) names.push_back(each.name.substr(0, end));
    }
    return names;
  };
  using ::testing::ElementsAre;
  EXPECT_EQ(changed("All-Linear"), changed(".*_proj"));
  EXPECT_THAT(
      changed(R"(model\.layers\.1\..*\.(q|v)_proj)"),
      ElementsAre("model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.v_proj"));
  EXPECT_THAT(changed("model.layers.0.self_attn.(q|q_proj)"),
              ElementsAre("model.layers.0.self_attn.q_proj"))
      << "the alternative that matches the whole name";
  EXPECT_THROW(changed("q_proj"), UsageError) << "not the whole of a name";
}

// The adapter that PEFT saved, and the adapter saved here, which is the same.
TEST_P(TransformerGoldenTest, LlamaWithLora) {
  const std::string adapter = path("llama_small_lora");
  const Json golden = read_golden(path("llama_small_lora.json")).at(0);
  const TextModelInfo info =
      parse_hugging_face_config(golden.at("config").dump(), "llama_small_lora");
  const std::unique_ptr<TextModel> made = info.make(
      "clm", {.vocabulary = info.vocabulary, .attention = GetParam().attention}, init_);
  auto& model = dynamic_cast<Llama&>(*made);
  load(model, "llama_small.safetensors");
  model.compute_in(GetParam().dtype);
  const LoraOptions options = read_adapter_config(adapter);
  add_lora(model, options, init_);
  load_adapter(adapter, model);
  const Tensor logits = model.logits(numbers(golden.at("tokens")));
  compare_training(golden, model, logits, reshape(numbers(golden.at("labels")), {-1}));

  const TempFolder saved;
  save_adapter(saved.path(), model, options, "llama_small");
  EXPECT_EQ(contents(saved.path() + "/adapter_model.safetensors"),
            contents(adapter + "/adapter_model.safetensors"));
  const LoraOptions read = read_adapter_config(saved.path());
  EXPECT_EQ(read.change.rank, options.change.rank);
  EXPECT_EQ(read.change.alpha, options.change.alpha);
  EXPECT_THAT(read.targets, ::testing::UnorderedElementsAreArray(options.targets));
}

// As published, and with the norms that torch.nn.Transformer ends either half with.
TEST_P(TransformerGoldenTest, EncoderDecoder) {
  for (const Json& golden : read_golden(path("transformer_small.json"))) {
    const bool final_norms = golden.at("final_norms");
    SCOPED_TRACE(final_norms);
    Transformer model({.vocabulary = golden.at("vocabulary"),
                       .longest = golden.at("longest"),
                       .layers = golden.at("layers"),
                       .width = golden.at("width"),
                       .heads = golden.at("heads"),
                       .inner = golden.at("inner"),
                       .dropout = 0,
                       .final_norms = final_norms,
                       .attention = GetParam().attention},
                      init_);
    load(model, "transformer_small.safetensors");
    model.compute_in(GetParam().dtype);
    const Tensor logits =
        model.logits(numbers(golden.at("source")), numbers(golden.at("target")),
                     numbers(golden.at("lengths")));
    compare(golden, "logits", logits);
    const Tensor loss = cross_entropy(logits, reshape(numbers(golden.at("labels")), {-1}));
    compare(golden, "loss", loss);
    // Without final norms a ReLU's input is so close to zero that bfloat16's rounding of words
    // and positions decides its sign: PyTorch's own gradients, with these rounded too, are as
    // far off.
    if (!final_norms && GetParam().dtype == DType::kBFloat16) continue;
    backward(loss);
    compare_gradients(golden, model);
  }
}

// A real network with the weights that transformers reads from the same file.
TEST(LlamaGoldenTest, SmolLM2) {
  const char* file = std::getenv("TIDEMARK_SMOLLM2");
  if (file == nullptr) GTEST_SKIP() << "TIDEMARK_SMOLLM2 does not name the file";
  Session session({.threads = test_threads()});
  ParameterInit init(1);
  const auto weights = open_weights(file);
  const TextModelInfo info = parse_hugging_face_config(weights->metadata().at("config"), file);
  const std::unique_ptr<TextModel> made =
      info.make("clm", {.vocabulary = info.vocabulary, .longest = 48}, init);
  auto& model = dynamic_cast<Llama&>(*made);
  load_into(model, *weights, {.names = hugging_face_names(*weights)});
  const Json golden = Json::parse(read_text_file(path("smollm2.json.gz")));
  const Tensor tokens = numbers(golden.at("tokens"));
  const std::vector<float> values = to_vector(model.logits(tokens));
  const auto asked = golden.at("asked").get<std::vector<size_t>>();
  for (size_t row = 0; row < golden.at("logits").size(); ++row) {
    for (size_t i = 0; i < asked.size(); ++i) {
      EXPECT_NEAR(values[row * static_cast<size_t>(info.vocabulary) + asked[i]],
                  golden.at("logits")[row][i].get<float>(), 1e-4)
          << row << ' ' << asked[i];
    }
  }
  const Tensor loss =
      model.run({.tokens = tokens, .labels = numbers(golden.at("labels"))}).loss;
  EXPECT_NEAR(to_vector(loss)[0], golden.at("loss").get<float>(), 1e-5);
  backward(loss);
  EXPECT_EQ(golden.at("gradients").size(), model.parameters().size());
  for (const NamedTensor& one : model.parameters()) {
    const double expected = golden.at("gradients").at(one.name);
    EXPECT_NEAR(to_vector(norm(grad_of(one.tensor)))[0], expected, 1e-4 * expected) << one.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Attention, TransformerGoldenTest,
    ::testing::Values(Kind{"materialised", AttentionImplementation::kMaterialised},
                      Kind{"memory_efficient", AttentionImplementation::kMemoryEfficient},
                      Kind{"materialised_bfloat16", AttentionImplementation::kMaterialised,
                           DType::kBFloat16},
                      Kind{"memory_efficient_bfloat16",
                           AttentionImplementation::kMemoryEfficient, DType::kBFloat16}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace tidemark::testing
