#include "models/checkpoint/torchvision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "models/checkpoint/weight_file.h"
#include "models/checksum.h"
#include "models/image_models.h"
#include "models/vgg.h"
#include "models/vision_transformer.h"
#include "ops/elementwise/inplace.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempFolder;
using Json = nlohmann::json;
using Make = std::function<std::unique_ptr<ImageModel>(ParameterInit&)>;

// Small networks with every kind of layer that there is a layout for.
std::map<std::string, Make> networks(int64_t classes = 10) {
  const ImageModelOptions options{.image = 16, .classes = classes};
  std::map<std::string, Make> all;
  for (const char* name :
       {"resnet18", "mobilenet_v2", "efficientnet_b0", "mnasnet1_0", "googlenet"}) {
    all[name] = [=](ParameterInit& init) { return make_image_model(name, options, init); };
  }
  all["vgg11"] = [=](ParameterInit& init) { return make_vgg(11, 8, options, init); };
  all["vit"] = [=](ParameterInit& init) {
    return make_vision_transformer(
        {.patch = 8, .width = 24, .inner = 40, .heads = 3, .layers = 2}, options, init);
  };
  return all;
}

std::string checksum(const ImageModel& model) {
  const std::vector<NamedTensor> parameters = model.parameters(), buffers = model.buffers();
  return *tensors_checksum({parameters, buffers});
}

std::vector<float> values(const Tensor& tensor) {
  std::vector<float> all(static_cast<size_t>(tensor.elements()));
  Session::current().download(tensor, all.data());
  return all;
}

class TorchvisionTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/w.safetensors"; }

  // A file in which element i of each tensor is i.
  void write_counts(const std::vector<SafetensorsSpec>& specs) const {
    SafetensorsWriter writer(path(), specs, {});
    for (const SafetensorsSpec& spec : specs) {
      std::vector<float> counts(static_cast<size_t>(spec.shape.elements()));
      std::iota(counts.begin(), counts.end(), 0.0F);
      writer.write(std::as_bytes(std::span(counts)));
    }
    writer.commit();
  }
  std::vector<SafetensorsSpec> specs_of(const ImageModel& model) const {
    std::vector<SafetensorsSpec> specs;
    for (const NamedTensor& tensor : torchvision_tensors(model)) {
      specs.push_back({tensor.name, DType::kFloat32, tensor.tensor.shape()});
    }
    return specs;
  }
  std::string complaint(const ImageModel& model) const {
    const std::string before = checksum(model);
    SafetensorsFile file(path());
    try {
      load_torchvision(model, file);
    } catch (const DataError& error) {
      EXPECT_EQ(checksum(model), before) << "nothing was changed";
      return error.what();
    }
    ADD_FAILURE() << "no DataError";
    return "";
  }

  TempFolder folder_;
  Session session_{{.device = "cpu", .threads = 1, .budget = Bytes(256 << 20)}};
};

TEST_F(TorchvisionTest, WhatWasSavedIsLoadedWithAllBuffers) {
  for (const auto& [name, make] : networks()) {
    SCOPED_TRACE(name);
    ParameterInit first(1), second(2);
    const auto one = make(first), two = make(second);
    for (const NamedTensor& buffer : one->buffers()) {
      const auto kept = std::make_shared<std::vector<float>>(
          draw_uniform(3, 1, buffer.tensor.elements(), 1.0));
      copy_(buffer.tensor,
            session_.upload(TensorMeta::contiguous(DType::kFloat32, buffer.tensor.shape()),
                            Category::kData, kept->data(), kept));
    }
    const std::string before = checksum(*one);
    save_torchvision(path(), *one);
    EXPECT_EQ(checksum(*one), before) << "saving changes nothing";
    const auto file = open_weights(path());
    const LoadReport report = load_torchvision(*two, *file);
    EXPECT_THAT(report.missing, ElementsAre());
    EXPECT_EQ(report.loaded,
              static_cast<int64_t>(one->parameters().size() + one->buffers().size()));
    EXPECT_EQ(checksum(*two), before);
  }
}

TEST_F(TorchvisionTest, LayoutsAreTorchvisions) {
  for (const auto& [name, make] : networks()) {
    SCOPED_TRACE(name);
    ParameterInit init(1);
    const auto model = make(init);
    write_counts(specs_of(*model));
    SafetensorsFile file(path());
    load_torchvision(*model, file);
    for (const NamedTensor& one : model->parameters()) {
      SCOPED_TRACE(one.name);
      const std::vector<float> ours = values(one.tensor);
      const Shape& s = one.tensor.shape();
      int64_t i = 0;
      // Where the element with ours's index i is in the file.
      const auto expect = [&](int64_t at) {
        ASSERT_EQ(ours[static_cast<size_t>(i)], static_cast<float>(at)) << i;
        ++i;
      };
      if (s.rank() == 4) {  // (K, R, S, C) here, (K, C, R, S) there
        for (int64_t k = 0; k < s[0]; ++k)
          for (int64_t r = 0; r < s[1]; ++r)
            for (int64_t q = 0; q < s[2]; ++q)
              for (int64_t c = 0; c < s[3]; ++c) expect(((k * s[3] + c) * s[1] + r) * s[2] + q);
      } else if (name == "vgg11" && one.name == "classifier.0.weight") {
        for (int64_t k = 0; k < s[0]; ++k)  // (K, 7, 7, 512) and (K, 512, 7, 7)
          for (int64_t p = 0; p < 49; ++p)
            for (int64_t c = 0; c < 512; ++c) expect((k * 512 + c) * 49 + p);
      } else if (one.name.ends_with("in_proj.weight") ||
                 one.name.ends_with("out_proj.weight")) {
        for (int64_t in = 0; in < s[0]; ++in)
          for (int64_t out = 0; out < s[1]; ++out) expect(out * s[0] + in);
      } else {
        for (int64_t at = 0; at < s.elements(); ++at) expect(at);
      }
    }
  }
}

// scripts/make_golden.py writes the file: state_dict() of one network of each family.
TEST_F(TorchvisionTest, NamesAndShapesAreThoseOfStateDicts) {
  const Json golden = Json::parse(std::ifstream(TIDEMARK_GOLDEN_DIR "/torchvision_names.json"));
  Session session({.device = "sim:a100-80gb"});
  EXPECT_EQ(golden.size(), 11u);
  for (const auto& [name, expected] : golden.items()) {
    SCOPED_TRACE(name);
    ParameterInit init(1);
    const auto model = make_image_model(name, {}, init);
    std::map<std::string, std::vector<int64_t>> ours;
    for (const NamedTensor& one : torchvision_tensors(*model)) {
      ours[one.name] = {one.tensor.shape().begin(), one.tensor.shape().end()};
    }
    EXPECT_EQ(ours, (expected.get<std::map<std::string, std::vector<int64_t>>>()));
  }
}

TEST_F(TorchvisionTest, TheLastLayerMayBeOfOtherClasses) {
  for (const auto& [name, make] : networks(7)) {
    SCOPED_TRACE(name);
    ParameterInit first(1), second(2);
    const auto one = make(first), two = networks(5).at(name)(second);
    save_torchvision(path(), *one);
    const auto head = [&](const ImageModel& model) {
      return values(model.parameters().rbegin()[1].tensor);
    };
    const std::vector<float> before = head(*two);
    SafetensorsFile file(path());
    const LoadReport report = load_torchvision(*two, file);
    ASSERT_EQ(report.missing.size(), 2u);
    EXPECT_EQ(report.missing[1], two->parameters().back().name);
    EXPECT_EQ(head(*two), before);
    EXPECT_EQ(values(two->parameters()[0].tensor), values(one->parameters()[0].tensor));
  }
}

TEST_F(TorchvisionTest, WhatIsNotUsedHereIsPassedOverAndNothingElse) {
  ParameterInit init(1);
  const auto model = networks().at("resnet18")(init);
  std::vector<SafetensorsSpec> specs = specs_of(*model);
  specs.push_back({"bn1.num_batches_tracked", DType::kInt64, {}});
  specs.push_back({"aux1.fc1.weight", DType::kFloat32, {3}});
  const auto write = [&] {
    SafetensorsWriter writer(path(), specs, {});
    for (const SafetensorsSpec& spec : specs) {
      writer.write(std::vector<std::byte>(
          static_cast<size_t>((size_of(spec.dtype) * spec.shape.elements()).count())));
    }
    writer.commit();
  };
  write();
  SafetensorsFile file(path());
  EXPECT_THAT(load_torchvision(*model, file).missing, ElementsAre());
  specs.push_back({"layer1.2.conv1.weight", DType::kFloat32, {3}});
  write();
  EXPECT_THAT(complaint(*model), HasSubstr("layer1.2.conv1.weight"));
  specs.pop_back();
  specs.erase(specs.begin() + 1);
  write();
  EXPECT_THAT(complaint(*model),
              HasSubstr("'bn1.weight', which this network needs, is missing"));
}

// Published files of ViT are older than the names of today.
TEST_F(TorchvisionTest, TransformersOfOldNamesAreRead) {
  ParameterInit init(1);
  const auto model = networks().at("vit")(init);
  std::vector<SafetensorsSpec> specs = specs_of(*model);
  int64_t renamed = 0;
  for (SafetensorsSpec& spec : specs) {
    for (const auto& [now, before] :
         {std::pair(".mlp.0.", ".mlp.linear_1."), std::pair(".mlp.3.", ".mlp.linear_2.")}) {
      const size_t at = spec.name.find(now);
      if (at == std::string::npos) continue;
      spec.name.replace(at, std::strlen(now), before);
      ++renamed;
    }
  }
  EXPECT_EQ(renamed, 8);
  write_counts(specs);
  SafetensorsFile file(path());
  EXPECT_THAT(load_torchvision(*model, file).missing, ElementsAre());
}

}  // namespace
}  // namespace tidemark
