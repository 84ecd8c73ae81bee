#include "models/checkpoint/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "models/checkpoint/weight_file.h"
#include "models/checksum.h"
#include "models/nn/parameter_init.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempFolder;

struct Inner : Module {
  explicit Inner(ParameterInit& init)
      : weight(init.uniform({4, 3}, 1)), mean(ParameterInit::buffer({3}, 5)) {
    register_parameter("weight", weight);
    register_buffer("mean", mean);
  }
  Tensor weight, mean;
};

// Two parts, the second with the weights of the first.
struct Tied : Module {
  explicit Tied(uint64_t seed) : init(seed), first(init), bias(init.uniform({6}, 1)) {
    register_parameter("bias", bias);
    register_child("first", first);
    tied = first.weight;
    register_parameter("decoder", tied);
  }
  ParameterInit init;
  Inner first;
  Tensor bias, tied;
};

class WeightsTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/w.safetensors"; }
  static std::string checksum(const Module& module) {
    const std::vector<NamedTensor> parameters = module.parameters(), buffers = module.buffers();
    return *tensors_checksum({parameters, buffers});
  }
  std::string complaint(Module& module, const LoadOptions& options = {}) {
    const std::string before = checksum(module);
    SafetensorsFile file(path());
    try {
      load_into(module, file, options);
    } catch (const DataError& error) {
      EXPECT_EQ(checksum(module), before) << "nothing was written";
      return error.what();
    }
    ADD_FAILURE() << "no DataError";
    return "";
  }
  static std::vector<std::string> names_in(const SafetensorsFile& file) {
    std::vector<std::string> names;
    for (const WeightEntry& entry : file.entries()) names.push_back(entry.name);
    return names;
  }

  ParameterInit init_{9};
  TempFolder folder_;
  Session session_{{.device = "cpu", .threads = 1, .budget = Bytes(1 << 20)}};
};

TEST_F(WeightsTest, SavedAndLoadedAreTheSame) {
  const Tied one(1);
  Tied two(2);
  EXPECT_NE(checksum(one), checksum(two));
  save_weights(path(), one, {{"format", "pt"}});
  SafetensorsFile file(path());
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_THAT(names_in(file), ElementsAre("bias", "decoder", "first.mean"))
      << "tied weights once";
  const LoadReport report = load_into(two, file);
  EXPECT_EQ(report.loaded, 3);
  EXPECT_EQ(checksum(one), checksum(two));
}

TEST_F(WeightsTest, TiedWeightsGoByEitherName) {
  const Tied one(1);
  const WeightNames others = [](const std::string& ours) -> std::vector<std::string> {
    return {ours == "decoder" ? "first.weight" : ours};
  };
  save_weights(path(), one, {}, others);
  SafetensorsFile file(path());
  EXPECT_THAT(names_in(file), ElementsAre("bias", "first.weight", "first.mean"));
  Tied two(2);
  EXPECT_TRUE(load_into(two, file).missing.empty());
  EXPECT_EQ(checksum(one), checksum(two));
}

// As files that were saved without regard to tying have them.
TEST_F(WeightsTest, OfTiedWeightsThatAreThereTwiceTheFirstNameCounts) {
  const Inner untied(init_);
  const Tensor other = upload_constant({4, 3}, 7, Category::kParameter, "other");
  const std::vector<NamedTensor> tensors{{"bias", init_.uniform({6}, 1)},
                                         {"first.weight", other},
                                         {"decoder", untied.weight},
                                         {"first.mean", untied.mean}};
  save_tensors(path(), tensors);
  Tied tied(2);
  SafetensorsFile file(path());
  EXPECT_EQ(load_into(tied, file).loaded, 3);
  EXPECT_EQ(values_of(tied.tied), values_of(untied.weight));
}

TEST_F(WeightsTest, OtherNamesAndParts) {
  ParameterInit first_init(1);
  const Inner one(first_init);
  const WeightNames names = [](const std::string& ours) -> std::vector<std::string> {
    if (ours == "weight") return {"query.w", "key.w"};
    return {};
  };
  save_weights(path(), one, {}, names);
  SafetensorsFile file(path());
  EXPECT_THAT(names_in(file), ElementsAre("query.w", "key.w"));
  EXPECT_EQ(file.find("key.w")->shape, (Shape{2, 3}));
  ParameterInit init(2);
  Inner two(init);
  EXPECT_EQ(load_into(two, file, {.names = names}).loaded, 1);
  EXPECT_EQ(checksum(one), checksum(two)) << "the buffer kept its values";
  const WeightNames three = [](const std::string&) -> std::vector<std::string> {
    return {"a", "b", "c"};
  };
  EXPECT_THROW(load_into(two, file, {.names = three}), UsageError) << "4 rows in 3 parts";
}

TEST_F(WeightsTest, MissingAndUnexpectedAreListed) {
  const Tied one(1);
  const WeightNames renamed = [](const std::string& ours) -> std::vector<std::string> {
    return {ours == "bias" ? "other" : ours};
  };
  save_weights(path(), one, {}, renamed);
  Tied two(2);
  EXPECT_THAT(complaint(two), HasSubstr("missing tensors: 1 (bias); "
                                        "unexpected tensors: 1 (other)"));
  EXPECT_THAT(complaint(two, {.missing_allowed = true}), HasSubstr("unexpected tensors: 1"));
  EXPECT_THAT(complaint(two, {.unexpected_allowed = true}), HasSubstr("missing tensors: 1"));
  SafetensorsFile file(path());
  const LoadReport report =
      load_into(two, file, {.missing_allowed = true, .unexpected_allowed = true});
  EXPECT_THAT(report.missing, ElementsAre("bias"));
  EXPECT_THAT(report.unexpected, ElementsAre("other"));
  EXPECT_EQ(report.loaded, 2);
}

TEST_F(WeightsTest, ShapesAndTypesMustFit) {
  ParameterInit init(1);
  Inner module(init);
  const auto write = [&](DType dtype, const Shape& shape) {
    SafetensorsWriter writer(path(), {{"weight", dtype, shape}}, {});
    writer.write(std::vector<std::byte>(
        static_cast<size_t>((size_of(dtype) * shape.elements()).count())));
    writer.commit();
  };
  write(DType::kFloat32, {3, 4});
  EXPECT_THAT(complaint(module, {.missing_allowed = true}),
              HasSubstr("tensor 'weight': is F32 (3, 4), 'weight' takes float32 (4, 3)"));
  write(DType::kInt32, {4, 3});
  EXPECT_THAT(complaint(module, {.missing_allowed = true}), HasSubstr("is I32 (4, 3)"));
}

TEST_F(WeightsTest, EachKindOfSourceGivesTheSame) {
  const auto gguf = open_weights(std::string(TIDEMARK_GOLDEN_DIR) + "/gguf_llama.gguf");
  std::vector<NamedTensor> tensors, fresh;
  for (const WeightEntry& entry : gguf->entries()) {
    tensors.push_back({entry.name, ParameterInit::buffer(entry.shape, 0)});
    fresh.push_back({entry.name, ParameterInit::buffer(entry.shape, 0)});
  }
  EXPECT_EQ(load_tensors(tensors, *gguf).loaded, static_cast<int64_t>(tensors.size()));
  const std::string sum = *tensors_checksum({tensors});
  EXPECT_NE(sum, tensors_checksum({fresh}));

  save_tensors(path(), tensors);
  load_tensors(fresh, *open_weights(path()));
  EXPECT_EQ(tensors_checksum({fresh}), sum);

  for (const NamedTensor& tensor : fresh) {
    assign_values_from(
        [](Bytes, std::span<std::byte> piece) { std::ranges::fill(piece, std::byte{}); },
        tensor.tensor);
  }
  std::string map;
  for (size_t i = 0; i < tensors.size(); ++i) {
    map += (map.empty() ? "" : ",") + ('"' + tensors[i].name) + R"(": ")" +
           (i < 5 ? "first" : "second") + '"';
  }
  save_tensors(folder_.path() + "/first", std::span(tensors).first(5));
  save_tensors(folder_.path() + "/second", std::span(tensors).subspan(5));
  map = R"({"weight_map": {)" + map + "}}";
  load_tensors(fresh, *open_weights(folder_.write("index.json", {map.begin(), map.end()})));
  EXPECT_EQ(tensors_checksum({fresh}), sum);
}

// Rounded to the nearest, and in parts that do not end where a piece does.
TEST_F(WeightsTest, FloatsBecomeBFloat16) {
  constexpr size_t kCount = 20001;
  std::vector<float> values(kCount);
  for (size_t i = 0; i < kCount; ++i) values[i] = 1.0F / static_cast<float>(i + 1);
  SafetensorsWriter writer(path(),
                           {{"a", DType::kFloat32, {kCount}},
                            {"b", DType::kFloat32, {kCount}},
                            {"c", DType::kInt32, {kCount}}},
                           {});
  for (int i = 0; i < 3; ++i) writer.write(std::as_bytes(std::span(values)));
  writer.commit();
  const Tensor tensor = session_.upload_from(
      [](Bytes, std::span<std::byte>) {},
      TensorMeta::contiguous(DType::kBFloat16, {2 * kCount}), Category::kParameter);
  const std::vector<NamedTensor> tensors{{"w", tensor}};
  SafetensorsFile file(path());
  const auto load = [&](const std::vector<std::string>& names) {
    load_tensors(
        tensors, file,
        {.names = [&](const std::string&) { return names; }, .unexpected_allowed = true});
  };
  EXPECT_THROW(load({"a", "c"}), DataError);
  load({"a", "b"});
  const std::vector<std::byte> loaded = values_of(tensor);
  for (size_t i = 0; i < 2 * kCount; ++i) {
    BFloat16 value;
    std::memcpy(&value, loaded.data() + i * sizeof(value), sizeof(value));
    ASSERT_EQ(value.bits, BFloat16(values[i % kCount]).bits) << i;
  }
}

// 96 MiB, in six rows. The uploaded values would not fit beside it all at once.
TEST_F(WeightsTest, LargeOnesAreFilledInParts) {
  Session session(
      {.device = "cpu", .threads = 1, .budget = Bytes(164 << 20), .policy = "none"});
  const Tensor tensor = ParameterInit::buffer({6, 4 << 20}, 0);
  const auto value_at = [](int64_t offset) { return static_cast<std::byte>(offset % 251); };
  assign_values_from(
      [&](Bytes offset, std::span<std::byte> piece) {
        for (size_t i = 0; i < piece.size(); ++i) {
          piece[i] = value_at(offset.count() + static_cast<int64_t>(i));
        }
      },
      tensor);
  const std::vector<std::byte> loaded = values_of(tensor);
  for (size_t i = 0; i < loaded.size(); ++i) {
    ASSERT_EQ(loaded[i], value_at(static_cast<int64_t>(i))) << i;
  }
}

TEST_F(WeightsTest, ADeviceWithoutDataSavesNothing) {
  Session simulated({.device = "sim:host"});
  const Tied one(1);
  EXPECT_THROW(save_weights(path(), one), UsageError);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace tidemark
