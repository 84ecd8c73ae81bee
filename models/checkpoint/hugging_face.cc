#include "models/checkpoint/hugging_face.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "models/config_json.h"
#include "models/nn/dense.h"
#include "models/nn/lora.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

// The name with `end` replaced, or an empty string if the name ends otherwise.
std::string with_end(const std::string& name, std::string_view end, std::string_view by) {
  if (!name.ends_with(end)) return {};
  return name.substr(0, name.size() - end.size()) + std::string(by);
}

std::vector<std::string> other_names(const std::string& name) {
  std::vector<std::string> names{name};
  for (std::string& old :
       std::vector<std::string>{with_end(name, "LayerNorm.weight", "LayerNorm.gamma"),
                                with_end(name, "LayerNorm.bias", "LayerNorm.beta"),
                                with_end(name, "predictions.bias", "predictions.decoder.bias"),
                                with_end(name, "lm_head.bias", "lm_head.decoder.bias")}) {
    if (!old.empty()) names.push_back(std::move(old));
  }
  // Names of two parts are those of heads: "weight" alone could be anything.
  const size_t first = name.find('.');
  if (first == name.rfind('.')) return names;
  const size_t count = names.size();
  for (size_t i = 0; i < count; ++i) names.push_back(names[i].substr(first + 1));
  return names;
}

// A parameter of rank 2; null if there is none of this name.
const WeightEntry* matrix(const WeightSource& file, const std::string& name) {
  const WeightEntry* entry = file.find(hugging_face_names(file)(name)[0]);
  return entry != nullptr && entry->shape.rank() == 2 ? entry : nullptr;
}

// A config.json that names the type of these tensors' matrices: transformers converts what it
// loads to the type that is named.
std::string with_type(const std::string& config, std::span<const DeferredTensor> tensors) {
  auto json = nlohmann::ordered_json::parse(config);
  const bool narrow = std::any_of(tensors.begin(), tensors.end(), [](const auto& each) {
    return each.dtype == DType::kBFloat16;
  });
  const char* const type = narrow ? "bfloat16" : "float32";
  json[json.contains("torch_dtype") ? "torch_dtype" : "dtype"] = type;
  if (json.contains("dtype")) json["dtype"] = type;
  return json.dump(2) + "\n";
}

}  // namespace

std::optional<bool> read_lower_case(const std::string& path) {
  return ConfigJson::read(path).flag("do_lower_case");
}

std::vector<DeferredTensor> merged_parameters(Module& model) {
  std::map<std::string, const Dense*> changed;
  model.visit([&](const std::string& name, Module& part) {
    const auto* dense = dynamic_cast<const Dense*>(&part);
    if (dense && dense->is_adapted()) changed[name + ".weight"] = dense;
  });
  std::vector<DeferredTensor> tensors;
  for (const NamedTensor& each : without_shared(model.parameters())) {
    if (is_lora(each.name)) continue;
    const auto layer = changed.find(each.name);
    std::function<Tensor()> make = [tensor = each.tensor] { return tensor; };
    if (layer != changed.end()) {
      make = [dense = layer->second] { return dense->merged_weight(); };
    }
    tensors.push_back({each.name, each.tensor.dtype(), each.tensor.shape(), std::move(make)});
  }
  return tensors;
}

void save_hugging_face_folder(const std::string& folder,
                              std::span<const DeferredTensor> tensors,
                              const std::string& config, const std::string& like) {
  const fs::path to = folder, from = like;
  std::error_code error;
  fs::create_directories(to, error);
  if (error) throw DataError(folder, "cannot be made: " + error.message());
  save_deferred((to / "model.safetensors").string(), tensors, {{"format", "pt"}});
  if (like.empty()) {
    write_text_file((to / "config.json").string(), with_type(config, tensors));
    return;
  }
  if (fs::equivalent(from, to, error)) return;
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "tokenizer.model", "special_tokens_map.json", "added_tokens.json", "vocab.json",
        "merges.txt", "vocab.txt", "chat_template.jinja"}) {
    if (!fs::exists(from / name)) continue;
    std::string text = read_text_file((from / name).string());
    if (name == std::string_view("config.json")) text = with_type(text, tensors);
    write_text_file((to / name).string(), text);
  }
}

TextModelSizes sizes_in(const WeightSource& file, const TextModelInfo& model) {
  TextModelSizes sizes;
  if (const WeightEntry* words = matrix(file, model.words)) sizes.width = words->shape[1];
  if (const WeightEntry* table = matrix(file, model.positions)) {
    sizes.positions = table->shape[0];
  }
  const size_t number = model.inner.find(".0.") + 1;
  std::string inner = model.inner;
  while (const WeightEntry* weight = matrix(file, inner)) {
    if (sizes.width > 0) sizes.inner = weight->shape.elements() / sizes.width;
    inner = model.inner;
    inner.replace(number, 1, std::to_string(++sizes.layers));
  }
  return sizes;
}

WeightNames hugging_face_names(const WeightSource& file) {
  return [&file](const std::string& ours) -> std::vector<std::string> {
    for (std::string& name : other_names(ours)) {
      if (file.find(name) != nullptr) return {std::move(name)};
    }
    return {ours};
  };
}

}  // namespace tidemark
