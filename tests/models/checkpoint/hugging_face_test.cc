#include "models/checkpoint/hugging_face.h"

#include <gtest/gtest.h>

#include <filesystem>

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
  EXPECT_EQ(found({"layers.0.mlp.up_proj.weight"}, "model.layers.0.mlp.up_proj.weight"),
            "layers.0.mlp.up_proj.weight");
  EXPECT_EQ(found({"weight"}, "lm_head.weight"), "lm_head.weight") << "could be anything";
  EXPECT_EQ(found({"something.else"}, norm), norm);
}

}  // namespace
}  // namespace tidemark::testing
